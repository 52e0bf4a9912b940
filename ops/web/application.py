"""The application: sections behind one navigation, one shell for every page, the same headers on every answer.

Everything is served from the package, so pages work without any other host; a page's words reach it as JSON alone and are
set as text. Invariant: nothing but GET and HEAD is answered, except where
`Access.written` says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ops.web.access import LOGIN, STATIC, Access, Guarded

_STATIC_FILES = Path(__file__).parent / "static"
_SHELL = Environment(loader=FileSystemLoader(_STATIC_FILES), autoescape=True, undefined=StrictUndefined).get_template(
    "shell.html"
)
_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; img-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True, kw_only=True)
class Shell:
    """What is around every page."""

    run: str
    remark: str
    """What is shown, beside the run's name: `archive`."""
    sections: Sequence[tuple[str, str]]
    """Label and path of every entry in the navigation."""

    def page(self, title: str, module: str, *, section: str = "") -> Response:
        """A page that a module of `static/` fills; `section` is the label of its entry."""
        filled = _SHELL.render(
            title=" · ".join(part for part in (title, self.run) if part),
            run=self.run,
            remark=self.remark,
            module=module,
            sections=self.sections,
            section=section,
        )
        return HTMLResponse(filled, headers={"cache-control": "no-store"})


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the application with an entry in the navigation."""

    label: str
    path: str
    """Of its first page."""
    routes: Callable[[Shell], Sequence[BaseRoute]]
    """Its pages and what they ask for."""


def application(
    sections: Sequence[Section], access: Access, *, run: str, remark: str, others: Sequence[BaseRoute] = ()
) -> ASGIApp:
    """The whole application; `/` leads to the first section. `others`: what is no page, and stands in no navigation."""
    shell = Shell(run=run, remark=remark, sections=tuple((section.label, section.path) for section in sections))

    async def home(_: Request) -> Response:
        return RedirectResponse(sections[0].path, status_code=303)

    async def login(_: Request) -> Response:
        # Says nothing of the run to whom it does not know.
        return Shell(run="", remark="", sections=()).page("Sign in", "login.js")

    routes: list[BaseRoute] = [
        Route("/", home),
        Route(LOGIN, login),
        Mount(STATIC, StaticFiles(directory=_STATIC_FILES)),
        *(route for section in sections for route in section.routes(shell)),
        *others,
    ]
    return _WithHeaders(Guarded(Starlette(routes=routes), access))


class _WithHeaders:
    """Every answer carries `_HEADERS`, refusals too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                known = {name for name, _ in headers}
                headers += [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                if b"cache-control" not in known:
                    headers.append((b"cache-control", b"no-cache"))
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, send_with_headers)
