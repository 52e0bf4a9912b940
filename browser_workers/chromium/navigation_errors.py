"""Explains to the policy why a document could not be had: pure functions of Chromium's error names."""

from collections.abc import Callable
from urllib.parse import urlsplit

_TEXT_LIMIT = 2000
ABORTED = "net::ERR_ABORTED"
"""A download, an empty answer or another navigation took this one's place: no document comes of it."""
_BLOCKED = frozenset({"ERR_BLOCKED_BY_CLIENT", "ERR_EMPTY_RESPONSE", "ERR_TUNNEL_CONNECTION_FAILED"})
"""What Chromium says of a request that the network rules have stopped, or that the gate could not pass on."""
_WORDS = {
    "ERR_NAME_NOT_RESOLVED": "there is no such host (DNS)",
    "ERR_NAME_RESOLUTION_FAILED": "its host's name could not be looked up (DNS)",
    "ERR_CONNECTION_REFUSED": "the connection was refused",
    "ERR_CONNECTION_RESET": "the site broke the connection off",
    "ERR_CONNECTION_CLOSED": "the site closed the connection",
    "ERR_EMPTY_RESPONSE": "the site closed the connection without an answer",
    "ERR_CONNECTION_TIMED_OUT": "the connection timed out",
    "ERR_TIMED_OUT": "it timed out",
    "ERR_ADDRESS_UNREACHABLE": "there is no way to its address",
    "ERR_INTERNET_DISCONNECTED": "there is no network",
    "ERR_TOO_MANY_REDIRECTS": "it redirects in a circle",
    "ERR_UNSAFE_PORT": "browsers refuse this port",
    "ERR_INVALID_RESPONSE": "the site's answer makes no sense",
    "ERR_INVALID_HTTP_RESPONSE": "the site's answer is not HTTP",
    "ERR_RESPONSE_HEADERS_TOO_BIG": "the site's answer is too large",
    "ERR_HTTP_RESPONSE_CODE_FAILURE": "the site answered with an error and no page",
    "ERR_BLOCKED_BY_RESPONSE": "the site forbids showing this page here",
    "ERR_ABORTED": "it led to no page: a download, or an empty answer",
    "ERR_BLOCKED_BY_CLIENT": "it is blocked",
    "ERR_TUNNEL_CONNECTION_FAILED": "the network gave no way to it",
}
_FAMILIES = (
    ("ERR_CERT_", "its certificate is not valid (TLS)"),
    ("ERR_SSL_", "no secure connection could be made (TLS)"),
    ("ERR_HTTP2_", "the site broke the protocol"),
    ("ERR_QUIC_", "the site broke the protocol"),
    ("ERR_PROXY_", "the network gave no way to it"),
)


def unreachable(url: str, failure: str, why_blocked: Callable[[str], str]) -> str:
    """One sentence; `failure` holds Chromium's name for it, as `net::ERR_...`, somewhere."""
    name = failure.partition("net::")[2].split(" ")[0].strip()
    host = urlsplit(url).hostname or ""
    if name in _BLOCKED and (reason := why_blocked(host)):
        return f"{url[:_TEXT_LIMIT]} could not be reached: {reason}"
    if not name:
        return f"{url[:_TEXT_LIMIT]} could not be reached: {failure}"
    family = next((words for prefix, words in _FAMILIES if name.startswith(prefix)), "")
    words = _WORDS.get(name) or family
    return f"{url[:_TEXT_LIMIT]} could not be reached: {f'{words} ({name})' if words else name}"


def unanswered(url: str, after_s: float) -> str:
    return f"{url[:_TEXT_LIMIT]} did not answer within {after_s:g} s"


def answered_badly(status: int) -> str:
    """What a document's HTTP status says beside the document; empty when that is what was asked for."""
    return f"the site answered {status}" if status >= 400 else ""
