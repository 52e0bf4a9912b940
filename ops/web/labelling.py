"""The section in which a person labels episodes, one after the other, without being shown what judges said."""

from dataclasses import dataclass

import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ops.labels.label_file import Label, LabelFile
from ops.web.answers import explaining, json_answer, named
from ops.web.application import Section, Shell
from schemas.errors import ConfigurationError
from schemas.text import valid

LABEL, PATH = "Label", "/label"
WRITTEN = "/api/labels/"
"""Where labels are put, the one thing of the application that is written."""
_LONGEST_NOTE = 2_000
_MOST_BYTES = 16_384


class Found(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person found."""

    success: bool | None
    note: str = ""


class Sheet(msgspec.Struct, frozen=True):
    """What the pages are told."""

    file: str
    labels: tuple[Label, ...]


@dataclass(frozen=True)
class Labelling:
    file: LabelFile

    @property
    def section(self) -> Section:
        return Section(label=LABEL, path=PATH, routes=self._routes)

    def _routes(self, shell: Shell) -> tuple[Route, ...]:
        async def page(_: Request) -> Response:
            return shell.page("Label", "label.js", section=LABEL)

        return (
            Route(PATH, page),
            Route("/api/labels", explaining(self._sheet)),
            Route(f"{WRITTEN}{{episode}}", explaining(self._put), methods=["PUT"]),
        )

    async def _sheet(self, _: Request) -> Response:
        return json_answer(Sheet(str(self.file.path), await anyio.to_thread.run_sync(self.file.labels)))

    async def _put(self, request: Request) -> Response:
        episode = named(request.path_params["episode"])
        found = _found(await _body(request))
        await anyio.to_thread.run_sync(self.file.put, episode, found.success, valid(found.note, _LONGEST_NOTE))
        return await self._sheet(request)


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise ConfigurationError(f"This note is too long: write at most {_LONGEST_NOTE} characters.")
    return body


def _found(body: bytes) -> Found:
    try:
        return msgspec.json.decode(body, type=Found)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"This is no label: {error}.") from error
