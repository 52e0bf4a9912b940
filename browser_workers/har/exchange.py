"""One request and what came of it, as a browser says it."""

from dataclasses import dataclass

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    method: str
    url: str
    started_at: float
    """Unix seconds."""
    request_headers: Headers = ()
    body: bytes | None = None
    """That was sent."""
    status: int = 0
    """0: no answer came, for the reason of `error`, or none yet."""
    status_text: str = ""
    response_headers: Headers = ()
    response_body: bytes | None = None
    """Only where it is asked for, and of JSON."""
    took_s: float = 0.0
    error: str = ""

    def request_header(self, name: str) -> str:
        return _value(self.request_headers, name)

    def response_header(self, name: str) -> str:
        return _value(self.response_headers, name)


def _value(headers: Headers, name: str) -> str:
    """The last one, as browsers take it; names in small letters."""
    return next((value for key, value in reversed(headers) if key.lower() == name), "")
