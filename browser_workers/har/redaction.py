"""Takes secrets out of what is recorded. Pure.

Invariant: what cannot be read as a form or as JSON is not kept at all, since nobody can say what stands in it.
"""

import itertools
import re
from collections.abc import Iterable
from email.message import Message as Mail
from email.parser import BytesParser
from email.policy import HTTP
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit, urlunsplit

import msgspec

from browser_workers.har.exchange import Headers

REMOVED = "[removed]"
_HEADERS = frozenset({"cookie", "cookie2", "set-cookie", "set-cookie2", "proxy-authenticate", "www-authenticate"})
_ADDRESSES = frozenset({"referer", "location", "content-location", "origin"})
"""Headers whose values are addresses."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_WHOLE = frozenset({"pass", "pin", "session", "sid"})
"""Words that mean a secret alone, and little as a part of others."""
_ENDINGS = ("auth", "otp", "secret", "secrets", "token", "tokens", "userpass")
_PARTS = (
    "accesskey",
    "apikey",
    "authcode",
    "authkey",
    "authorization",
    "cardnumber",
    "credential",
    "csrf",
    "cvc",
    "cvv",
    "formkey",
    "jwt",
    "oauth",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "pincode",
    "privatekey",
    "pwd",
    "secretkey",
    "sessid",
    "sessionid",
    "xsrf",
)
"""Of a word; or two words that stand beside each other, as in `api-key`."""
_FORM, _MULTIPART, _JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"
_DEEPEST = 40


def is_secret(name: str) -> bool:
    """Whether a header, parameter or field of this name holds what nobody else may have, as `user[password]` does."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if any(word in _WHOLE or word.endswith(_ENDINGS) or any(part in word for part in _PARTS) for word in words):
        return True
    return any(one + other in _PARTS for one, other in itertools.pairwise(words))


def headers_without(headers: Headers) -> Headers:
    """Nor has it those of HTTP/2 that say the address once more, as `:path` does."""
    shown = ((name, value) for name, value in headers if not name.startswith(":"))
    kept = ((name, value) for name, value in shown if name.lower() not in _HEADERS and not is_secret(name))
    return tuple((name, address_without(value) if name.lower() in _ADDRESSES else value) for name, value in kept)


def address_without(url: str) -> str:
    """Without a user's name and password, and without the values of secret parameters; empty: it is no address."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        query = parts.query if _is_harmless(parts.query) else _form_without(parts.query)
        fragment = "" if any(is_secret(name) for name, _ in parse_qsl(parts.fragment)) else parts.fragment
        return urlunsplit((parts.scheme, host, parts.path, query, fragment))
    except ValueError:
        return ""


def body_without(body: bytes, content_type: str) -> str | None:
    """A form's or JSON's text; None for everything else."""
    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind == _FORM:
            text = body.decode()
            return text if _is_harmless(text) else _form_without(text)
        if kind == _JSON or kind.endswith("+json"):
            return _json_without(body)
        if kind == _MULTIPART:
            return _multipart_without(body, content_type)
    except (ValueError, LookupError, RecursionError):
        return None
    return None


def named_cookies(set_cookies: Iterable[str], names: frozenset[str]) -> dict[str, str]:
    """The values of these cookies alone."""
    found = {}
    for line in set_cookies:
        name, _, value = line.partition(";")[0].partition("=")
        if name.strip() in names:
            found[name.strip()] = value.strip()
    return found


def _is_harmless(form: str) -> bool:
    return not any(is_secret(name) for name, _ in parse_qsl(form, keep_blank_values=True))


def _form_without(form: str) -> str:
    pairs = parse_qsl(form, keep_blank_values=True)
    return urlencode([(name, REMOVED if is_secret(name) else value) for name, value in pairs], quote_via=quote_plus)


def _json_without(body: bytes) -> str:
    return msgspec.json.encode(_value_without(msgspec.json.decode(body), _DEEPEST)).decode()


def _value_without(value: object, levels: int) -> object:
    if not levels:
        return REMOVED
    match value:
        case dict():
            return {key: REMOVED if is_secret(str(key)) else _value_without(inner, levels - 1) for key, inner in value.items()}
        case list():
            return [_value_without(inner, levels - 1) for inner in value]
        case _:
            return value


def _multipart_without(body: bytes, content_type: str) -> str | None:
    """Fields in the same order under the same boundary; of files their names alone."""
    mail: Mail = BytesParser(policy=HTTP).parsebytes(b"content-type: " + content_type.encode() + b"\r\n\r\n" + body)
    boundary = mail.get_boundary()
    if not mail.is_multipart() or not boundary:
        return None
    parts = []
    for part in mail.get_payload():
        if not isinstance(part, Mail):
            return None
        name = str(part.get_param("name", "", header="content-disposition"))
        content = part.get_payload(decode=True)
        value = content.decode("utf-8", "replace") if isinstance(content, bytes) else ""
        if is_secret(name) or part.get_filename():
            value = REMOVED
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n')
    return "".join(parts) + f"--{boundary}--\r\n"
