"""Controls who may read: nobody but this machine, unless there is a token.

A page of another site must not reach the application through a name of its own that leads here, so names are checked too.
A token travels in a header alone, never in an address; a browser gets a cookie for it that no script can read.
"""

import hmac
import os
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from schemas.errors import ConfigurationError
from schemas.private_file import read_private

LOGIN, STATIC, METRICS = "/login", "/static", "/metrics"
TOKEN_VARIABLE = "MILLRACE_WEB_TOKEN"  # noqa: S105 - the name of a variable
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_ENTER = "/api/login"
_COOKIE = "millrace_session"
_LEAST_CHARACTERS = 20
_WRONG_TOKEN_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Access:
    hosts: frozenset[str] = LOOPBACK
    """Names by which the application is reached."""
    token: str = field(default="", repr=False)
    """Empty: none is asked for."""
    tls: bool = False
    written: str = ""
    """Beginning of the paths that take PUT; empty: none does."""
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """What the cookie of who signed in holds; another one in every process."""

    def names(self, host_header: str) -> bool:
        """Whether this `Host` header means us."""
        try:
            name = urlsplit(f"//{host_header}").hostname
        except ValueError:
            return False
        return name is not None and name.rstrip(".").lower() in self.hosts

    def writes(self, method: str, path: str) -> bool:
        # A page of another site has to ask before it sends a PUT, and that question is refused.
        return method == "PUT" and bool(self.written) and path.startswith(self.written)

    def knows(self, authorization: str, cookie: str) -> bool:
        """Whether a request with these may read."""
        return not self.token or self.is_token(authorization) or _equal(cookie, self.session)

    def is_token(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        return bool(self.token) and scheme.lower() == "bearer" and _equal(given.strip(), self.token)


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def read_token(file: Path | None, environment: Mapping[str, str] = os.environ) -> str:
    """The token of a file that its owner alone can read, or of the environment; empty: there is none.

    Raises:
        ConfigurationError: others can read the file, or the token is short.
    """
    token = (environment.get(TOKEN_VARIABLE, "") if file is None else read_private(file)).strip()
    if (token or file) and len(token) < _LEAST_CHARACTERS:
        raise ConfigurationError(
            f"the token has fewer than {_LEAST_CHARACTERS} characters: make one with `openssl rand -hex 32`"
        )
    if not token.isascii():
        raise ConfigurationError("the token holds other characters than ASCII: make one with `openssl rand -hex 32`")
    return token


def require_safe(host: str, *, tls: bool, token: str) -> None:
    """Raises `ConfigurationError` for an address beyond loopback without TLS and a token."""
    if host in LOOPBACK or (tls and token):
        return
    raise ConfigurationError(
        f"--host {host} is reached from other machines: give --tls-cert and --tls-key, and a token in {TOKEN_VARIABLE} "
        "or --token-file; or leave --host out and forward the port, as in ssh -L 8400:127.0.0.1:8400 HOST"
    )


def host_names(host: str, others: Collection[str] = ()) -> frozenset[str]:
    """Names that a `Host` header may have when `host` is listened on."""
    return LOOPBACK | {name.lower() for name in (host, *others)}


class Guarded:
    """Lets pass what `Access` lets read."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        answer = await self._answer(request) or self._app
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response | None:
        """What is said instead of a page; None: the request may pass."""
        access, path = self._access, str(request.scope["path"])
        if request.method not in ("GET", "HEAD") and not access.writes(request.method, path):
            return PlainTextResponse("This application answers GET only.\n", 405, {"allow": "GET, HEAD"})
        if not access.names(request.headers.get("host", "")):
            return PlainTextResponse("This name is not one of this application: use the address that it printed.\n", 421)
        authorization, cookie = request.headers.get("authorization", ""), request.cookies.get(_COOKIE, "")
        if path == _ENTER:
            return await self._enter(authorization)
        if path == LOGIN or path.startswith(f"{STATIC}/") or access.knows(authorization, cookie):
            return None
        if path == METRICS or path.startswith("/api/"):
            return JSONResponse({"error": "Sign in first."}, 401, {"www-authenticate": "Bearer"})
        return RedirectResponse(LOGIN, 303)

    async def _enter(self, authorization: str) -> Response:
        if not self._access.is_token(authorization):
            await anyio.sleep(_WRONG_TOKEN_S)
            return JSONResponse({"error": "This is not the token."}, 401, {"www-authenticate": "Bearer"})
        response = JSONResponse({})
        response.set_cookie(_COOKIE, self._access.session, httponly=True, samesite="strict", secure=self._access.tls, path="/")
        return response
