"""The end of a process that may have threads in libraries."""

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import NoReturn

_GRACE_S, _ALARM_S = 60.0, 120.0


def leave(code: int) -> NoReturn:
    """Ends this process, once what was to be done at its end is done, or has taken a minute: a library may wait for ever for a
    device that no longer answers.

    While threads go on that nobody waits for, nothing is torn down under them: one in the middle of a library's C++ would take
    the whole process with it, by SIGABRT, and whoever has started it would take that for a crash.
    """
    is_torn_down = not any(thread.daemon for thread in threading.enumerate())
    _bound(code)
    if is_torn_down:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _bound(code: int) -> None:
    """What is not done in time is left undone."""
    timer = threading.Timer(_GRACE_S, os._exit, (code,))
    timer.daemon = True
    timer.start()
    # A library that keeps the interpreter to itself meanwhile lets no timer of Python's run: the system has one too.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, _ALARM_S)
