"""Runs a consumer's script: quiet, ended by Ctrl-C without a word, a mistake told in a sentence."""

import logging
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVarTuple

import anyio
import structlog

from schemas.errors import ConfigurationError, MillraceError, NotPermitted
from schemas.text import visible_lines

_FAILED, _FOR_A_PERSON, _CTRL_C = 1, 78, 130
Arguments = TypeVarTuple("Arguments")


def consume(main: Callable[[*Arguments], Awaitable[object]], *arguments: *Arguments) -> None:
    """`anyio.run` for a script. Only warnings are logged, to stderr, unless structlog was configured before.

    Raises:
        SystemExit: 130 after Ctrl-C; after a sentence on stderr 78 for what only a person can mend, 1 for any other error of
            Millrace's. Errors of the script's own come out as they are.
    """
    if not structlog.is_configured():
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
    try:
        anyio.run(partial(main, *arguments))
    except KeyboardInterrupt:
        sys.exit(_CTRL_C)
    except MillraceError as error:
        print(visible_lines(str(error)), file=sys.stderr)  # noqa: T201 (a script's last words)
        sys.exit(_FOR_A_PERSON if isinstance(error, ConfigurationError | NotPermitted) else _FAILED)
