"""Runs one async command until it ends or a signal cancels it, and turns its end into an exit code.

ended                               its own code
SIGTERM                             0
SIGINT                              130
ConfigurationError, TrainerError,
ArchiveError, NotPermitted          78: only a person can mend it; its sentence goes to stderr
a package of an extra is missing    78: the command that gets it goes to stderr
anything else                       1, with a traceback
"""

import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from importlib.util import find_spec

import anyio
from anyio.abc import TaskStatus

from ops.processes.packages import extra_with, install_command
from ops.processes.restarts import EXIT_FATAL
from schemas.errors import ArchiveError, ConfigurationError, MillraceError, NotPermitted, TrainerError
from schemas.text import visible_lines

_FOR_A_PERSON = (ArchiveError, ConfigurationError, NotPermitted, TrainerError)


def run(body: Callable[[], Awaitable[int]]) -> int:
    try:
        return anyio.run(_until_signal, body, backend_options={"use_uvloop": find_spec("uvloop") is not None})
    except BaseExceptionGroup as group:
        return _explain(_first(group))
    except Exception as error:  # noqa: BLE001 - the outermost boundary: every error becomes an exit code
        return _explain(error)


async def _until_signal(body: Callable[[], Awaitable[int]]) -> int:
    async with anyio.create_task_group() as group:
        received: list[signal.Signals] = []
        await group.start(_listen, group.cancel_scope, received)
        code = await body()
        group.cancel_scope.cancel()
    if received:
        return 130 if received[0] is signal.SIGINT else 0
    return code


async def _listen(
    scope: anyio.CancelScope, received: list[signal.Signals], *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for number in signals:
            received.append(number)
            scope.cancel()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that tells a person most: one that only a person can mend, if there is one."""
    leaves = list(_leaves(group))
    return next((leaf for leaf in leaves if isinstance(leaf, _FOR_A_PERSON)), leaves[0])


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for part in error.exceptions for leaf in _leaves(part)]
    return [error]


def _explain(error: BaseException) -> int:
    if isinstance(error, _FOR_A_PERSON):
        print(visible_lines(f"millrace: {error}"), file=sys.stderr)
        return EXIT_FATAL
    if isinstance(error, ModuleNotFoundError) and (extra := extra_with(error.name or "")):
        print(f"millrace: {error.name} is not installed here: {install_command(extra)}", file=sys.stderr)
        return EXIT_FATAL
    if not isinstance(error, MillraceError):
        print(visible_lines("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    print(visible_lines(f"millrace: {type(error).__name__}: {error}"), file=sys.stderr)
    return 1
