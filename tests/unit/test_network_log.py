"""What is kept of an episode's traffic: entries in order, within limits, and no secret."""

import gzip
import hashlib
import json
from typing import Any

import msgspec
import pytest

from browser_workers.har.entry import LARGEST_BODY, Wanted, write_entry
from browser_workers.har.exchange import Exchange, Headers
from browser_workers.har.log import NetworkLog, wanted_by
from browser_workers.har.redaction import REMOVED, address_without, body_without, headers_without, is_secret
from bus.chain import EpisodeChain
from bus.memory import MemoryBus
from bus.subjects import Subjects
from schemas.browser_config import BrowserConfig
from schemas.errors import ConfigurationError
from schemas.messages import NetworkRecord
from tests import builders

SECRET = "hunter2-hunter2"
FORM, JSON = "application/x-www-form-urlencoded", "application/json; charset=utf-8"
TASK = builders.task()


def exchange(url: str = "http://shop.test/cart", **changes: Any) -> Exchange:
    return Exchange(**{"method": "GET", "url": url, "started_at": 1_790_000_000.5, "status": 200, **changes})


def log(*, max_entries: int = 10, max_bytes: int = 100_000, wanted: Wanted = Wanted()) -> NetworkLog:  # noqa: B008
    return NetworkLog(max_entries, max_bytes, wanted)


def chain(attempt: int = 1) -> EpisodeChain:
    subjects = Subjects(builders.RUN)
    return EpisodeChain(MemoryBus(subjects), subjects, TASK, attempt, 0)


def har(record: NetworkRecord) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(record.har))["log"]
    return found


SECRETS = """password Password newPassword user[password] pwd passwd PASSPHRASE x-api-key apiKey access_token id-token
X-CSRF-Token authorization client_secret otp card[cvc] cardNumber form_key sessionId credentials[0]
x-csrftoken csrfmiddlewaretoken XSRFTOKEN xsrf-token accesstoken refreshtokens userpassword password2 passwordconfirm userpwd
clientsecret secretkey apikey x-apikey privatekey myaccesskey cardnumber cvvcode usercredentials idjwt basicauth oauth2
oauthverifier authkey totp pincode userpass PHPSESSID JSESSIONID sess_id proxyauthorization"""
HARMLESS = """author passport compass keyword opinion bypass tokenizer q note[note] accept referer secretary passage possession
authors processid businessid accessid keynumber spin shipping monkey laptop broken assessment discard[number] foot_p"""


def test_names_of_secrets() -> None:
    assert [name for name in SECRETS.split() if not is_secret(name)] == []


def test_names_that_only_look_like_it() -> None:
    assert [name for name in HARMLESS.split() if is_secret(name)] == []


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (f"user=me&password={SECRET}", FORM),
        (f"user%5Bpassword%5D={SECRET}", FORM + "; charset=UTF-8"),
        (json.dumps({"login": [{"password": SECRET, "name": "me"}]}), JSON),
        (json.dumps({"secret": {"inner": SECRET}}), "application/vnd.api+json"),
        (f'--B\r\nContent-Disposition: form-data; name="pwd"\r\n\r\n{SECRET}\r\n--B--\r\n', "multipart/form-data; boundary=B"),
        (
            '--B\r\nContent-Disposition: form-data; name="f"; filename="x"\r\nContent-Type: text/plain\r\n\r\n'
            f"{SECRET}\r\n--B--\r\n",
            "multipart/form-data; boundary=B",
        ),
        (SECRET, "text/plain"),
        (f'{{"password": "{SECRET}"', JSON),
        ("[" * 5000 + f'"{SECRET}"' + "]" * 5000, JSON),
        (SECRET, ""),
    ],
)
def test_no_body_keeps_a_secret(body: str, content_type: str) -> None:
    kept = body_without(body.encode(), content_type)
    assert SECRET not in (kept or "")


def test_what_is_no_secret_stays_as_it_was_sent() -> None:
    form = "qty=2&note=a+b%C3%A4&empty="
    assert body_without(form.encode(), FORM) == form
    assert json.loads(body_without(b'{"a": {"b": [1, null]}}', JSON) or "") == {"a": {"b": [1, None]}}
    sent = '--B\r\nContent-Disposition: form-data; name="title"\r\n\r\nKite\r\n--B--\r\n'
    assert body_without(sent.encode(), "multipart/form-data; boundary=B") == sent


def test_headers_and_addresses_lose_what_nobody_else_may_have() -> None:
    headers: Headers = (
        (":authority", "shop.test"),
        (":path", f"/callback?access_token={SECRET}"),
        ("Cookie", SECRET),
        ("authorization", f"Bearer {SECRET}"),
        ("Proxy-Authorization", SECRET),
        ("Set-Cookie", SECRET),
        ("x-auth-token", SECRET),
        ("Referer", f"http://me:{SECRET}@shop.test/?token={SECRET}"),
        ("Accept", "text/html"),
    )
    kept = headers_without(headers)
    assert SECRET not in str(kept)
    assert [name for name, _ in kept] == ["Referer", "Accept"]
    assert address_without(f"http://u:{SECRET}@h:80/p?q=1&api_key={SECRET}#access_token={SECRET}").startswith(
        "http://h:80/p?q=1"
    )
    assert SECRET not in address_without(f"http://u:{SECRET}@h:80/p?q=1&api_key={SECRET}#access_token={SECRET}")
    assert address_without("http://[") == ""


def test_an_entry_is_one_of_har() -> None:
    made = write_entry(
        exchange(
            "http://shop.test/cart?x=1&y=",
            method="POST",
            request_headers=(("content-type", FORM),),
            body=b"qty=2",
            status=302,
            response_headers=(
                ("Location", "/done"),
                ("content-type", JSON),
                ("set-cookie", f"flash=saved; Path=/\nsid={SECRET}"),
            ),
            response_body=b'{"items": 1}',
            took_s=0.25,
        ),
        Wanted(cookies=frozenset({"flash"})),
    )
    entry = made.entry
    assert made.left_out == ""
    assert entry["startedDateTime"] == "2026-09-21T14:13:20.500+00:00"
    assert (entry["time"], entry["timings"]) == (250.0, {"send": 0, "wait": 250.0, "receive": 0})
    assert entry["request"]["queryString"] == [{"name": "x", "value": "1"}, {"name": "y", "value": ""}]
    assert entry["request"]["postData"] == {"mimeType": FORM, "text": "qty=2"}
    assert (entry["response"]["status"], entry["response"]["redirectURL"]) == (302, "/done")
    assert entry["response"]["cookies"] == [{"name": "flash", "value": "saved"}]
    assert entry["response"]["content"]["text"] == '{"items":1}'
    assert SECRET not in json.dumps(entry)


def test_entries_stand_in_the_order_in_which_they_were_asked_for() -> None:
    kept = log()
    first, second = kept.begin(exchange("http://a/1", status=0)), kept.begin(exchange("http://a/2", status=0))
    assert first is not None
    assert second is not None
    kept.put(second, exchange("http://a/2"))
    kept.put(first, exchange("http://a/1", status=404))
    record = kept.record(chain(), 0)
    entries = har(record)["entries"]
    assert [(each["request"]["url"], each["response"]["status"]) for each in entries] == [
        ("http://a/1", 404),
        ("http://a/2", 200),
    ]
    assert record.summary.sha256 == hashlib.sha256(record.har).hexdigest()
    assert (record.summary.num_entries, record.summary.missing, record.summary.num_earlier_attempts) == (2, (), 0)
    assert kept.record(chain(), 0) == record


def test_what_does_not_fit_is_counted_and_said() -> None:
    few = log(max_entries=2)
    places = [few.begin(exchange(f"http://a/{number}")) for number in range(5)]
    assert places == [0, 1, None, None, None]
    assert few.record(chain(), 0).summary.missing == ("3 requests behind the first 2 (browser_config.network_max_entries)",)
    small = log(max_bytes=2_000)
    for number in range(9):
        small.begin(exchange(f"http://a/{number}"))
    record = small.record(chain(), 0)
    assert 0 < record.summary.num_entries < 9
    assert "requests beyond 0.002 MB (browser_config.network_max_mb)" in record.summary.missing[0]
    assert "Missing: " in har(record)["comment"]
    large = log(max_bytes=10_000_000)
    large.begin(exchange(request_headers=(("content-type", FORM),), body=b"a=" + b"x" * LARGEST_BODY))
    assert large.record(chain(), 0).summary.missing == ("1 bodies that were sent of more than 256,000 bytes",)


def test_a_later_attempt_says_that_earlier_ones_are_not_in_its_record() -> None:
    record = log().record(chain(attempt=3), 2)
    assert record.summary.num_earlier_attempts == 2
    assert "what earlier attempts sent is not in here" in har(record)["comment"]


@pytest.mark.anyio
async def test_the_end_waits_for_what_is_over_and_a_moment_for_what_is_under_way() -> None:
    kept = log()
    first, second = kept.begin(exchange("http://a/1")), kept.begin(exchange("http://a/2"))
    assert first is not None
    assert second is not None
    kept.over(first)
    kept.put(first, exchange("http://a/1", status=201))
    await kept.settled(60.0, under_way_s=0.01)
    assert kept.record(chain(), 0).summary.missing == ()
    kept.over(second)
    await kept.settled(0.01)
    assert kept.record(chain(), 0).summary.missing == ("1 requests of which the browser did not say what they came to",)


def test_nothing_is_recorded_unless_asked_for() -> None:
    assert NetworkLog.of(BrowserConfig(), TASK) is None
    assert NetworkLog.of(BrowserConfig(record_network=True), TASK) is not None


@pytest.mark.parametrize(
    ("evaluation", "wanted"),
    [
        ("", Wanted()),
        ('{"traffic": {"cookies": ["flash"], "bodies": true}}', Wanted(frozenset({"flash"}), bodies=True)),
        ('{"eval": []}', Wanted()),
        ("no json", Wanted()),
        ('{"traffic": 1}', Wanted()),
    ],
)
def test_what_an_evaluation_asks_for(evaluation: str, wanted: Wanted) -> None:
    assert wanted_by(msgspec.structs.replace(TASK, evaluation=evaluation)) == wanted


@pytest.mark.parametrize(("key", "value"), [("network_max_entries", 0), ("network_max_mb", 0.0), ("network_max_mb", 101.0)])
def test_limits_that_make_no_sense_are_refused(key: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=f"browser_config.{key} is"):
        BrowserConfig(**{key: value})  # type: ignore[arg-type]


def test_removed_values_say_so() -> None:
    assert json.loads(body_without(b'{"token": 1}', JSON) or "") == {"token": REMOVED}


def test_what_is_not_whole_is_counted_once_however_often_it_is_written() -> None:
    kept = log(max_bytes=1_000_000)
    large = exchange(request_headers=(("content-type", FORM),), body=b"a=" + b"x" * LARGEST_BODY)
    place = kept.begin(large)
    assert place is not None
    kept.put(place, large)
    assert kept.record(chain(), 0).summary.missing == ("1 bodies that were sent of more than 256,000 bytes",)
    kept.lose("requests that were not understood")
    assert len(kept.record(chain(), 0).summary.missing) == 2
