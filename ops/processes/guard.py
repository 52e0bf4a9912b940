"""The child guard: whatever a command starts is gone when the command, its guard or its supervisor is gone.

    supervisor or shell
    └── outer guard       told by the kernel when the supervisor dies; adopts everything when the inner guard is killed
        └── inner guard   told by the kernel when the outer guard dies; adopts everything when the command is killed
            └── command   killed by the kernel when the inner guard dies

Both guards run the same loop: pass SIGUSR1, SIGTERM and SIGINT on to the child (SIGHUP as SIGTERM), kill the child when it
outlives the grace period after any but SIGUSR1 (at once on a second one), and, when the child has ended for any reason, kill
and reap every remaining descendant before exiting with the child's status (128 + n after signal n). Only the kernel is relied
on: `prctl` makes a guard the adopter of orphaned descendants and the receiver of its parent's death. Without `prctl` (macOS)
one guard kills its child's process group, and a killed guard leaves that group behind.

Run as a file, so that nothing but a few standard modules is loaded:
`python -I -S guard.py [--parent PID] [--grace SECONDS] -- COMMAND...`
"""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence

MARKER = "MILLRACE_GUARD"
"""Environment variable of a guarded command: process id of its guard."""
GRACE_S = 8.0

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform == "linux"
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_DRAIN_SIGNAL = signal.SIGUSR1
_PASSED_ON = (*_STOP_SIGNALS, _DRAIN_SIGNAL)


def guard_command(command: Sequence[str], *, parent: int | None = None, grace_s: float = GRACE_S) -> list[str]:
    """The argument vector that runs `command` guarded.

    Args:
        parent: process id of the caller when the command is to end with it; None: it outlives whoever started it.
    """
    bound = [] if parent is None else ["--parent", str(parent)]
    return [sys.executable, "-I", "-S", __file__, *bound, "--grace", str(grace_s), "--", *command]


def is_guarded() -> bool:
    return os.environ.get(MARKER) == str(os.getppid())


def _prctl(option: int, value: int) -> None:
    if _LINUX and ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _die_with(parent: int, by: signal.Signals) -> None:
    """Asks the kernel for `by` when the parent dies; exits if that has happened already."""
    _prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os._exit(128 + by)


def _fork(body: Callable[[], int], by: signal.Signals) -> int:
    """Runs `body` in a child with its own session that dies with this process, by signal `by`."""
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        _die_with(parent, by)
        code = body()
    except BaseException:  # noqa: BLE001 - the end of a forked process: nothing may escape into the parent's code
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def _guard(body: Callable[[], int], by: signal.Signals, grace_s: float) -> int:
    """Runs `body` in a child, outlives all of its descendants, and returns its exit status."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    waited = {signal.SIGCHLD, signal.SIGALRM, *(s for s in _PASSED_ON if signal.getsignal(s) != signal.SIG_IGN)}
    for number in waited:
        # Blocked and taken with sigwait, so that no signal can slip in between a check and a wait; a signal that is
        # ignored by default would be thrown away on some systems if it had no handler.
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    child = _fork(body, by)
    status = _wait(child, waited, grace_s)
    _kill_descendants(child)
    return status


def _wait(child: int, waited: set[signal.Signals], grace_s: float) -> int:
    stopping = False
    while True:
        number = signal.sigwait(waited)
        if number == signal.SIGCHLD:
            status = _reap(child)
            if status is not None:
                return status
        elif number == _DRAIN_SIGNAL:
            os.kill(child, number)  # it leaves by itself, however long that takes
        elif number == signal.SIGALRM or stopping:
            os.kill(child, signal.SIGKILL)
        else:
            stopping = True
            signal.setitimer(signal.ITIMER_REAL, grace_s)
            os.kill(child, signal.SIGTERM if number == signal.SIGHUP else number)


def _reap(child: int) -> int | None:
    """Reaps whatever has ended, adopted orphans too; the child's exit status if it was among them."""
    ended = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            ended = code if code >= 0 else 128 - code


def _kill_descendants(group: int) -> None:
    if not _LINUX:
        _kill_group(group)
        return
    while True:
        for pid in _children():
            with contextlib.suppress(PermissionError):  # a set-user-id helper: it ends with the processes it serves
                os.kill(pid, signal.SIGKILL)
        try:
            # A killed child's own children are adopted here before it can be reaped: the next round finds them.
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
        _reap(group)


def _children() -> list[int]:
    """Direct children that are alive or not yet reaped: none of their ids can be reused meanwhile."""
    mine = os.getpid()
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would double the start-up time
        if name.isdigit() and _parent_of(int(name)) == mine:
            found.append(int(name))
    return found


def _parent_of(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[1])


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _execute(command: Sequence[str], guard: int) -> int:
    os.environ[MARKER] = str(guard)
    for number in (signal.SIGCHLD, signal.SIGALRM, *_PASSED_ON):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)  # before unblocking: a signal that waits must end this process, not be lost
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    try:
        os.execvp(command[0], list(command))  # noqa: S606
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror}\n".encode())
        return 127


def _inner(command: Sequence[str], grace_s: float) -> int:
    guard = os.getpid()
    return _guard(lambda: _execute(command, guard), signal.SIGKILL, grace_s)


def _options(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    split = arguments.index("--")
    pairs = list(arguments[:split])
    return dict(zip(pairs[::2], pairs[1::2], strict=True)), list(arguments[split + 1 :])


def main() -> int:
    options, command = _options(sys.argv[1:])
    grace_s = float(options.get("--grace", GRACE_S))
    if "--parent" in options:
        _die_with(int(options["--parent"]), signal.SIGTERM)
    if not _LINUX:
        return _inner(command, grace_s)
    # The outer guard waits a little longer, so that the inner one can finish its own killing.
    return _guard(lambda: _inner(command, grace_s), signal.SIGTERM, grace_s + 1.0)


if __name__ == "__main__":
    sys.exit(main())
