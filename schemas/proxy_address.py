"""The address of a proxy, as people and providers write it: scheme, host, port, and who asks."""

import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

SCHEMES = ("http", "socks5")
_LABEL = r"[A-Za-z0-9_-]{1,63}"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*")


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    scheme: str
    """One of `SCHEMES`."""
    host: str
    """A name, or an address without brackets."""
    port: int
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """What logs and errors may say: no password, nor the user, in which providers have session and account."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def parse_proxy(text: str) -> ProxyAddress:
    """Raises `ValueError` with what to write; it never has the text, which may hold a password."""
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname or "", parts.port or 0
    except ValueError:
        host, port = "", 0
        parts = urlsplit("")
    if parts.scheme not in SCHEMES or not _HOST.fullmatch(host) or not port or parts.path.strip("/") or parts.query:
        raise ValueError("write scheme, host and port, as in http://proxy.example:3128 or socks5://user@proxy.example:1080")
    return ProxyAddress(parts.scheme, host, port, unquote(parts.username or ""), unquote(parts.password or ""))
