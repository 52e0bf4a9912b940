"""Who runs the server of a folder: one process at a time.

<folder>/nats.lock     held by the process that runs it: the run's own server role, or whoever reads a run that is down
<folder>/nats.role     held by the run's own server role, also while it waits for such a reader
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import structlog

from bus.retry import SERVER_AWAITED
from bus.trying import Tries
from schemas.errors import ConfigurationError
from schemas.file_lock import try_lock

_log = structlog.get_logger()
_TRIES = 3
"""Of a reader: whoever only looks whether the lock is free holds it for an instant."""


class _Held(Exception):
    """Another process has the lock."""


def is_served(folder: Path) -> bool:
    """Whether some process runs this folder's server now. Writes nothing where none ever ran."""
    return _is_held(folder / "nats.lock")


def has_own_server(folder: Path) -> bool:
    """Whether the run's own server role is up, or waits for a reader. Writes nothing where none ever was."""
    return _is_held(folder / "nats.role")


def _is_held(lock: Path) -> bool:
    if not lock.exists():
        return False
    try:
        with _lock(lock):
            return False
    except _Held:
        return True


@asynccontextmanager
async def only_server(folder: Path, *, lasting: bool) -> AsyncIterator[Callable[[], None]]:
    """No other process runs the folder's server while the context is open, or until what it gives is called.

    `lasting`: of the run's own server. One that runs for a reader's while is waited for.

    Raises:
        ConfigurationError: another process runs it; with `lasting`, another one that lasts.
    """
    with ExitStack() as role, ExitStack() as turn:
        try:
            if lasting:
                role.enter_context(_lock(folder / "nats.role"))
            await _taken(turn, folder, most=None if lasting else _TRIES)
        except _Held as error:
            raise ConfigurationError(
                f"the server of {folder} is running already: use it, or choose another save_path for a second run"
            ) from error
        yield turn.close


async def _taken(turn: ExitStack, folder: Path, *, most: int | None) -> None:
    """Raises `_Held` when another process had the lock at every one of `most` tries."""
    held: _Held | None = None
    async for number in Tries(SERVER_AWAITED, most=most):
        try:
            turn.enter_context(_lock(folder / "nats.lock"))
        except _Held as error:
            held = error
            if most is None and number == 1:
                _log.warning("server_awaits_its_turn", folder=str(folder), reason="another process serves it for the while")
        else:
            return
    assert held is not None
    raise held


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Raises `_Held`, and `ConfigurationError` on a disk that knows no locks."""
    with path.open("w") as file:
        if not try_lock(file, path.parent):
            raise _Held
        yield
