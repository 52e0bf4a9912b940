"""Sessions of Browserbase, by its public HTTP API (docs.browserbase.com): one for each episode, released behind it.

A session ends when its connection does, when it is released, or after the lease, whichever is first. Nothing of it is recorded
there, and captchas are left unsolved.
"""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from browser_workers.providers.api import Api
from browser_workers.providers.provider import Bill, Label, OutcomeUnknown, Place, Provided, Running, SessionEnded
from schemas.browser_config import BrowserConfig

T = TypeVar("T")
_SESSIONS = "/v1/sessions"
_LIVES = ("RUNNING", "PENDING")
_LONGEST_EPISODE = 100
"""Characters: all that a session carries has 512."""


class _Opened(msgspec.Struct, rename="camel"):
    id: str
    connect_url: str


class _Said(msgspec.Struct, rename="camel"):
    """What a session carries; all values are text, since only text is looked for."""

    run: str = ""
    worker: str = ""
    episode: str = ""
    token: str = ""
    until: str = ""


class _Session(msgspec.Struct, rename="camel"):
    id: str
    status: str
    proxy_bytes: int = 0
    expires_at: datetime | None = None
    user_metadata: _Said | None = None


class Browserbase:
    """Satisfies `browser_workers.providers.provider.Provider`."""

    def __init__(self, config: BrowserConfig, api: Api) -> None:
        self.lease_s = config.provider_lease_s
        self._api = api
        self._request = _request(config)
        self._project = {"projectId": config.provider_project} if config.provider_project else {}

    async def create(self, label: Label) -> Provided:
        carried = _Said(label.run, label.worker, label.episode[:_LONGEST_EPISODE], label.token, f"{label.until:.0f}")
        body = {**self._request, "userMetadata": msgspec.to_builtins(carried)}
        opened = _read(await self._api.ask("POST", _SESSIONS, body=body), _Opened)
        return Provided(opened.id, Place(opened.connect_url, is_session=True), label)

    async def keep_alive(self, session: Provided) -> None:
        """Its life cannot be made longer: it is only asked after."""
        found = _read(await self._api.ask("GET", f"{_SESSIONS}/{session.id}", of_session=True), _Session)
        if found.status not in _LIVES:
            raise SessionEnded(f"the provider has ended the session: {found.status}")

    async def end(self, session_id: str, *, was_lost: bool = False) -> Bill:
        body = {**self._project, "status": "REQUEST_RELEASE"}
        try:
            ended = _read(await self._api.ask("POST", f"{_SESSIONS}/{session_id}", body=body, of_session=True), _Session)
        except SessionEnded:
            return Bill()
        return Bill(ended.proxy_bytes)

    async def running(self, run: str) -> Sequence[Running]:
        query = {"status": "RUNNING", "q": f"user_metadata['run']:'{run}'"}
        sessions = _read(await self._api.ask("GET", _SESSIONS, query=query), list[_Session])
        return [
            Running(each.id, _label(each.user_metadata, each.expires_at))
            for each in sessions
            if each.status in _LIVES and each.user_metadata is not None and each.user_metadata.run == run
        ]

    async def close(self) -> None:
        await self._api.close()


def _request(config: BrowserConfig) -> dict[str, object]:
    """What is asked for, whichever the episode."""
    asked: dict[str, object] = {
        "timeout": round(config.provider_lease_s),
        "keepAlive": False,
        "browserSettings": {
            "viewport": {"width": config.viewport_width, "height": config.viewport_height},
            "recordSession": False,
            "logSession": False,
            "solveCaptchas": False,
        },
    }
    asked |= {"projectId": config.provider_project} if config.provider_project else {}
    asked |= {"region": config.provider_region} if config.provider_region else {}
    asked |= {"proxies": True} if config.provider_proxies else {}
    return asked


def _label(carried: _Said, expires_at: datetime | None) -> Label:
    """One whose time cannot be read ends when the provider says."""
    try:
        until = float(carried.until)
    except ValueError:
        until = expires_at.timestamp() if expires_at is not None else time.time()
    return Label(carried.run, carried.worker, carried.episode, carried.token, until)


def _read(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise OutcomeUnknown(f"the session provider's answer cannot be read: {error}") from error
