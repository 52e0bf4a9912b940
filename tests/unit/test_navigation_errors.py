"""Why a document could not be had, in words."""

import pytest

from browser_workers.chromium.navigation_errors import answered_badly, unanswered, unreachable
from browser_workers.chromium.settings import nothing_is_known

URL = "https://shop.test/basket?x=1"


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ("net::ERR_NAME_NOT_RESOLVED", "there is no such host (DNS) (ERR_NAME_NOT_RESOLVED)"),
        (
            "Page.goto: net::ERR_CONNECTION_REFUSED at https://shop.test/",
            "the connection was refused (ERR_CONNECTION_REFUSED)",
        ),
        ("net::ERR_CERT_DATE_INVALID", "its certificate is not valid (TLS) (ERR_CERT_DATE_INVALID)"),
        ("net::ERR_SSL_PROTOCOL_ERROR", "no secure connection could be made (TLS) (ERR_SSL_PROTOCOL_ERROR)"),
        ("net::ERR_TOO_MANY_REDIRECTS", "it redirects in a circle (ERR_TOO_MANY_REDIRECTS)"),
        ("net::ERR_SOMETHING_NEW", "ERR_SOMETHING_NEW"),
        ("Download is starting", "Download is starting"),
    ],
)
def test_chromium_names_become_words(failure: str, words: str) -> None:
    assert unreachable(URL, failure, nothing_is_known) == f"{URL} could not be reached: {words}"


@pytest.mark.parametrize(
    "failure", ["net::ERR_BLOCKED_BY_CLIENT", "net::ERR_EMPTY_RESPONSE", "net::ERR_TUNNEL_CONNECTION_FAILED"]
)
def test_the_rule_that_blocked_it_is_said(failure: str) -> None:
    asked = {"shop.test": "its host is denied"}
    assert unreachable(URL, failure, lambda host: asked.get(host, "")) == f"{URL} could not be reached: its host is denied"
    assert "could not be reached" in unreachable("https://other.test/", failure, lambda host: asked.get(host, ""))


def test_rules_do_not_speak_for_other_failures() -> None:
    assert "refused" in unreachable(URL, "net::ERR_CONNECTION_REFUSED", lambda _: "a rule")


def test_what_no_site_answered() -> None:
    assert unanswered(URL, 30.0) == f"{URL} did not answer within 30 s"
    assert (answered_badly(503), answered_badly(404), answered_badly(200), answered_badly(0)) == (
        "the site answered 503",
        "the site answered 404",
        "",
        "",
    )
