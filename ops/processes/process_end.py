"""The end of a process that may have threads in libraries."""

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """Ends this process, once what was to be done at its end is done.

    While threads go on that nobody waits for, nothing is torn down under them: one in the middle of a library's C++ would take
    the whole process with it, by SIGABRT, and whoever has started it would take that for a crash.
    """
    if not any(thread.daemon for thread in threading.enumerate()):
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
