"""What pages may reach, by value."""

from dataclasses import replace
from ipaddress import ip_address

import pytest

from browser_workers.network.addresses import assumed, kind, literal
from browser_workers.network.refusals import Refusals
from browser_workers.network.rules import Endpoint, Rules, endpoint, normal_host, rules_for
from browser_workers.network.socks import Answer, Malformed, Target, answer, greeting_size, target_of
from schemas.browser_config import BrowserConfig
from schemas.errors import ConfigurationError

PUBLIC = ip_address("93.184.215.14")
LOOPBACK = ip_address("127.0.0.1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("93.184.215.14", ""),
        ("2606:2800:21f::1", ""),
        ("::ffff:93.184.215.14", ""),
        ("64:ff9b::5db8:d70e", ""),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("127.0.0.1", "loopback"),
        ("127.255.0.9", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("2002:7f00:1::", "loopback"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("192.168.0.1", "private"),
        ("::ffff:10.0.0.1", "private"),
        ("::10.0.0.1", "private"),
        ("100.64.0.1", "private"),
        ("198.18.0.1", "private"),
        ("240.0.0.1", "private"),
        ("255.255.255.255", "private"),
        ("fc00::1", "private"),
        ("fd12::1", "private"),
        ("fec0::1", "private"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("169.254.169.254", "metadata"),
        ("168.63.129.16", "metadata"),
        ("100.100.100.200", "metadata"),
        ("fd00:ec2::254", "metadata"),
    ],
)
def test_what_kind_an_address_is(text: str, expected: str) -> None:
    found = kind(ip_address(text))
    assert expected in found
    assert bool(found) == bool(expected)


@pytest.mark.parametrize("text", ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "[::ffff:7f00:1]"])
def test_every_form_of_an_address_is_one(text: str) -> None:
    address = literal(normal_host(text))
    assert address is not None
    assert "loopback" in kind(address)


@pytest.mark.parametrize("text", ["example.org", "1password.com", "localhost", "a.b", ""])
def test_names_are_no_addresses(text: str) -> None:
    assert literal(text) is None


def test_what_can_be_said_without_a_look_up() -> None:
    assert assumed("localhost") == assumed("a.localhost") == LOOPBACK
    assert assumed("example.org") is None


def test_hosts_have_one_spelling() -> None:
    assert normal_host("EXAMPLE.org.") == "example.org"
    assert normal_host("bücher.example") == "xn--bcher-kva.example"
    assert normal_host("[::1]") == "::1"
    assert endpoint("http://[::1]:8080/x") == Endpoint("::1", 8080)
    assert endpoint("wss://Example.org/x") == Endpoint("example.org", 443)
    for nowhere in ("data:text/html,x", "about:blank", "http://[x", "http://a:99999/"):
        assert endpoint(nowhere) is None


def test_public_hosts_are_open_and_private_ones_closed_by_default() -> None:
    rules = Rules()
    assert rules.refusal("example.org", 443, PUBLIC) == ""
    assert "127.0.0.1:80 is a loopback address" in rules.refusal("127.0.0.1", 80, LOOPBACK)
    reason = rules.refusal("evil.example", 80, LOOPBACK)
    assert "evil.example:80 is at 127.0.0.1" in reason
    assert "browser_config.allow_private_hosts" in reason
    assert replace(rules, allow_private_hosts=True).refusal("evil.example", 80, LOOPBACK) == ""


def test_the_tasks_own_site_may_be_private_at_its_own_port_and_address() -> None:
    rules = Rules(own=Endpoint("shop.example", 8080))
    assert rules.refusal("shop.example", 8080, LOOPBACK) == ""
    assert "loopback" in rules.refusal("shop.example", 22, LOOPBACK)
    assert "loopback" in rules.refusal("www.shop.example", 8080, LOOPBACK)
    found_in_public = replace(rules, own_addresses=frozenset({PUBLIC}))
    assert found_in_public.refusal("shop.example", 8080, PUBLIC) == ""
    assert "loopback" in found_in_public.refusal("shop.example", 8080, LOOPBACK)
    web = Rules(own=Endpoint("10.0.0.1", 80))
    assert web.refusal("10.0.0.1", 443, ip_address("10.0.0.1")) == ""
    assert "private" in web.refusal("10.0.0.1", 8080, ip_address("10.0.0.1"))


def test_denied_hosts_come_first() -> None:
    rules = Rules(
        denied_hosts=("ads.example", "93.184.215.14"),
        allowed_hosts=("ads.example", "example.org"),
        allow_private_hosts=True,
        own=Endpoint("ads.example", 80),
    )
    for host in ("ads.example", "a.b.ads.example"):
        assert rules.refusal(host, 80) == f"{host} is refused by browser_config.denied_hosts"
    assert "denied_hosts" in rules.refusal("example.org", 443, PUBLIC)
    assert rules.refusal("example.org", 443, ip_address("1.1.1.1")) == ""


def test_allowed_hosts_close_everything_else_but_the_tasks_own_site() -> None:
    rules = Rules(allowed_hosts=("example.org",), own=Endpoint("www.shop.example", 443))
    for host in ("example.org", "a.example.org", "www.shop.example", "shop.example", "img.shop.example"):
        assert rules.refusal(host, 443, PUBLIC) == ""
    for host in ("badexample.org", "example.org.evil.example", "example.com"):
        assert rules.refusal(host, 443) == f"{host} is not among browser_config.allowed_hosts"
    assert "allow_private_hosts" in rules.refusal("a.example.org", 443, LOOPBACK)


def test_the_browsers_own_devtools_are_closed_to_all() -> None:
    config = BrowserConfig(cdp_url="http://127.0.0.1:9222", allow_private_hosts=True)
    rules = rules_for(config, "http://127.0.0.1:9222/")
    assert "DevTools" in rules.refusal("localhost", 9222, LOOPBACK)
    assert rules.refusal("localhost", 9223, LOOPBACK) == ""
    assert rules_for(BrowserConfig(cdp_url="wss://far.example"), "").devtools_port == 0


def test_refusals_are_remembered_for_a_while() -> None:
    refusals = Refusals()
    assert refusals.add("a.example", "because")
    assert not refusals.add("a.example", "because")
    assert refusals.why("A.example.") == "because"
    for number in range(64):
        refusals.add(f"{number}.example", "because")
    assert refusals.why("a.example") == ""
    refusals.forget("1.example")
    assert (refusals.why("1.example"), refusals.why("2.example")) == ("", "because")


@pytest.mark.parametrize(
    "host", ["http://example.org", "example.org/x", "example.org:80", "*.example.org", "", "10.0.0.0/8", "a b", ".example.org"]
)
@pytest.mark.parametrize("key", ["allowed_hosts", "denied_hosts"])
def test_what_is_no_host_is_said_at_once(key: str, host: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"browser_config\.{key} has .* write a name such as"):
        BrowserConfig(**{key: ("fine.example", host)})  # type: ignore[arg-type]


def test_hosts_may_be_names_and_addresses() -> None:
    BrowserConfig(denied_hosts=("Example.ORG", "bücher.example", "localhost", "10.0.0.1", "::1", "[fd00::1]", "a_b.example"))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9222", "ws://localhost:1/x", "http://[::1]:9", "https://a.example/x", "wss://a.b?c=d"]
)
def test_addresses_of_browsers(url: str) -> None:
    assert BrowserConfig(cdp_url=url).cdp_url == url


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://10.0.0.1:9222", "leads to 10.0.0.1 unencrypted: write https:// or wss://"),
        ("ws://browsers.example/x", "leads to browsers.example unencrypted"),
        ("127.0.0.1:9222", "write the browser's DevTools address"),
        ("ftp://a.example", "write the browser's DevTools address"),
        ("http://", "write the browser's DevTools address"),
        ("http://a:b:c", "write the browser's DevTools address"),
    ],
)
def test_unsafe_addresses_of_browsers_are_refused(url: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        BrowserConfig(cdp_url=url)
    assert sentence in str(error.value)


def test_socks_is_read_piece_by_piece() -> None:
    greeting = b"\5\2\0\2"
    assert [greeting_size(greeting[:size]) for size in range(1, 5)] == [0, 0, 0, 4]
    wanted = b"\5\1\0\3\x0bexample.org\1\xbb"
    assert all(target_of(wanted[:size]) is None for size in range(len(wanted)))
    assert target_of(wanted) == Target("example.org", 443)
    assert target_of(b"\5\1\0\1\x7f\0\0\1\0\x50") == Target("127.0.0.1", 80)
    assert target_of(b"\5\1\0\4" + bytes(15) + b"\1\0\x50") == Target("::1", 80)
    assert answer(Answer.NOT_ALLOWED)[:2] == b"\5\2"


@pytest.mark.parametrize("data", [b"\4\1\0", b"GET / HTTP/1.1", b"\5\1\2"])
def test_other_greetings_are_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        greeting_size(data)


@pytest.mark.parametrize(
    "data", [b"\4\1\0\1aaaa\0\0", b"\5\2\0\1aaaa\0\0", b"\5\1\0\7aaaa\0\0", b"\5\1\0\3\0\0\0", b"\5\1\0\3\3a\0b\0\0"]
)
def test_other_requests_are_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        target_of(data)
