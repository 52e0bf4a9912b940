"""Logins that sites find in the browser: of each site a file with cookies and local storage, in Playwright's form.

A file that has changed is read again when an episode begins on its site, so that a login may be renewed while a run goes on.
What it holds goes into the browser alone, into no message, log or record.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import msgspec
import structlog

from schemas.errors import ConfigurationError
from schemas.private_file import require_private
from schemas.site import site_of

if TYPE_CHECKING:
    from playwright.async_api import StorageState

_log = structlog.get_logger()
_SUFFIX = ".json"


class _Stored(msgspec.Struct):
    cookies: list[dict[str, Any]]
    origins: list[dict[str, Any]] = []


class Logins:
    """Those of one folder, whose files are called by their sites, as `shop.example.json`."""

    def __init__(self, folder: str) -> None:
        """`folder`: empty for no logins. Raises `ConfigurationError`: it is none, or a file of it cannot be used."""
        self._folder = Path(folder).expanduser() if folder else None
        self._known: dict[Path, tuple[tuple[int, int], StorageState]] = {}
        if self._folder is None:
            return
        if not self._folder.is_dir():
            raise ConfigurationError(f"browser_config.logins_folder: {self._folder} is no folder")
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            self._read(path)

    async def of(self, url: str) -> "StorageState | None":
        """What whoever begins there is signed in with: by the file of the address's own site, or of a domain above it."""
        if self._folder is None:
            return None
        return await anyio.to_thread.run_sync(self._newest, self._folder, site_of(url))

    def _newest(self, folder: Path, site: str) -> "StorageState | None":
        # A task's words are compared with the names that are there, and never become a path.
        stored = {path.stem: path for path in folder.glob(f"*{_SUFFIX}")}
        labels = site.partition(":")[0].split(".")
        domains = (".".join(labels[start:]) for start in range(len(labels) - 1))
        found = next((stored[domain] for domain in domains if domain in stored), None)
        return self._renewed(found) if found else None

    def _renewed(self, path: Path) -> "StorageState | None":
        try:
            return self._read(path)
        except ConfigurationError as error:
            # As while it is being written: what it held before is as good as it was.
            _log.warning("login_unreadable", reason=str(error))
            return self._known[path][1] if path in self._known else None

    def _read(self, path: Path) -> "StorageState":
        """Raises `ConfigurationError`."""
        require_private(path)
        known = self._known.get(path)
        try:
            status = path.stat()
            version = status.st_mtime_ns, status.st_size
            if known is not None and known[0] == version:
                return known[1]
            stored = msgspec.json.decode(path.read_bytes(), type=_Stored)
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigurationError(
                f"browser_config.logins_folder: {path} is no stored login ({error}): "
                f"make one with playwright open --save-storage={path.name} https://{path.stem}"
            ) from error
        state: StorageState = msgspec.to_builtins(stored)
        self._known[path] = version, state
        return state
