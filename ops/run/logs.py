"""Logging of one role process: every event as a JSON line in the run's folder, and a short line for people.

Each line carries the run, role and worker. Values that look like secrets are blotted out before anything is written.
"""

import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import structlog

from ops.run.log_file import BoundedLog
from schemas.text import visible, visible_lines

_Event = MutableMapping[str, Any]
_log = structlog.get_logger()
_BLOT = "***"
_LINE = 4_000
"""Characters of a line for people; the file has all."""
_SECRET_KEY = re.compile(r"(^|_)(password|passwd|secret|authorization|credentials?|api_key|nkey|jwt|token)$", re.IGNORECASE)
_SECRET_VARIABLE = re.compile(r"(^|_)(PASSWORD|SECRET|API_KEY|ACCESS_KEY|TOKEN)$")
# User and password in a URL; an NKey seed.
_SECRET_TEXT = re.compile(r"(?<=://)[^/@\s\"]+(?=@)|\bS[UAOCN][A-Z2-7]{56}\b")
_HIDDEN_FROM_PEOPLE = ("run", "role", "worker", "timestamp", "level", "event", "exception")


@contextmanager
def quiet_logs(threshold: int = logging.WARNING) -> Iterator[None]:
    """Of a command that is no role: only warnings and worse, on stderr, for its output may be for other programs."""
    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        processors=[
            *before["processors"][:-1],
            structlog.processors.format_exc_info,
            _visible,
            # Plain: rich takes minutes to draw a traceback that holds a page's words.
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback),
        ],
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
    try:
        with _without_remarks():
            yield
    finally:
        structlog.configure(**before)


@contextmanager
def role_logs(
    path: Path,
    *,
    run: str,
    role: str,
    worker: str,
    stream: TextIO | None = None,
    is_read: bool | None = None,
    verbose: bool = False,
) -> Iterator[None]:
    """Logs of this process go to `path`, one JSON object a line, and to a stream: all of them where it is read, else warnings
    and worse.

    Args:
        stream: without one, stderr.
        is_read: whether somebody reads the stream, as a pod's output; None: where it is a terminal.
        verbose: debug events too, and everything to `stream`, whatever it is.
    """
    stream = stream or sys.stderr
    is_read = stream.isatty() if is_read is None else is_read
    lowest = logging.DEBUG if verbose else logging.INFO
    log = BoundedLog(path)
    before = structlog.get_config()
    secrets = [value for name, value in os.environ.items() if _SECRET_VARIABLE.search(name) and len(value) >= 8]
    try:
        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                _Identity(run=run, role=role, worker=worker),
                structlog.processors.format_exc_info,
                _Blot(secrets),
                _Lines(log),
                _ForPeople(lowest if verbose or is_read else logging.WARNING),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(lowest),
            logger_factory=structlog.PrintLoggerFactory(stream),
        )
        with _without_remarks():
            yield
    except Exception as error:
        _log.critical("role_failed", exc_info=error)
        raise
    finally:
        structlog.configure(**before)
        log.close()


def log_path(logs: Path, role: str, worker: str) -> Path:
    """`browser-1.log`; the role leads, unless the worker's name says it already."""
    return logs / (f"{worker}.log" if worker.startswith(role) else f"{role}-{worker}.log")


@contextmanager
def _without_remarks() -> Iterator[None]:
    """asyncio remarks upon every encrypted connection of nats-py that ends, for how it was upgraded: no news to anyone."""

    def is_news(record: logging.LogRecord) -> bool:
        return "eof_received" not in record.msg

    logger = logging.getLogger("asyncio")
    logger.addFilter(is_news)
    try:
        yield
    finally:
        logger.removeFilter(is_news)


class _Identity:
    """Binds who is speaking, in every thread and task."""

    def __init__(self, **identity: str) -> None:
        self._identity = identity

    def __call__(self, _logger: object, _method: str, event: _Event) -> _Event:
        return {"timestamp": time.time(), **self._identity, **event}


class _Blot:
    """Blots secrets out: by the key's name, by their look, and the values of this process's secret variables."""

    def __init__(self, secrets: list[str]) -> None:
        self._secrets = secrets

    def __call__(self, _logger: object, _method: str, event: _Event) -> _Event:
        return {key: _BLOT if _SECRET_KEY.search(key) else self._clean(value) for key, value in event.items()}

    def _clean(self, value: object) -> object:
        if value is None or isinstance(value, bool | int | float):
            return value
        text = _SECRET_TEXT.sub(_BLOT, value if isinstance(value, str) else str(value))
        for secret in self._secrets:
            text = text.replace(secret, _BLOT)
        return text


def _visible(_logger: object, _method: str, event: _Event) -> _Event:
    return {key: visible_lines(value) if isinstance(value, str) else value for key, value in event.items()}


class _Lines:
    def __init__(self, log: BoundedLog) -> None:
        self._log = log

    def __call__(self, _logger: object, _method: str, event: _Event) -> _Event:
        self._log.write_line(json.dumps(event))
        return event


class _ForPeople:
    """`12:03:04 browser-1 warning page_failed episode=... reason=...`"""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold

    def __call__(self, _logger: object, method: str, event: _Event) -> str:
        level = event["level"]
        if logging.getLevelNamesMapping()[level.upper()] < self._threshold or level == "critical":
            # The end of a role is told by the command line, in a sentence.
            raise structlog.DropEvent
        clock = time.strftime("%H:%M:%S", time.localtime(event["timestamp"]))
        shown = "" if level == "info" else f"{level} "
        values = "".join(f" {key}={value}" for key, value in event.items() if key not in _HIDDEN_FROM_PEOPLE)
        exception = f"\n{visible_lines(event['exception'])}" if "exception" in event else ""
        return visible(f"{clock} {event['worker']} {shown}{event['event']}{values}", _LINE) + exception
