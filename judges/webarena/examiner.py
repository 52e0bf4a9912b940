"""Asks the benchmark's package, in a process of its own, one question at a time.

Invariant: no question outlasts its deadline; a process that did not answer is ended, and the next question gets another.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from bus.child_process import NO_PROGRAM, start_process
from judges.webarena.evaluation import Evaluation
from schemas.errors import ConfigurationError, JudgeError

VERSION = "1.2.3"
"""Of webarena-verified: another judges differently, and has a judge of another name."""
_SCRIPT = Path(__file__).parent / "examination.py"
_START_S = 180.0
_ANSWER_S = 20.0
"""Of processor time; then its process ends itself."""
_HANGS_S = 300.0
"""Until a process that does nothing is ended."""
_OWN_ENDS = (signal.SIGPROF, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)
"""Signals that a question ends its process by: its time is over, or the package crashed. Any other came from elsewhere."""
_LONGEST_LINE = 4_000_000
_LONGEST_QUESTION = 200_000_000
_KEPT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR")
"""Of the environment: no key of anybody's."""


class Finding(msgspec.Struct, frozen=True):
    """Of one evaluator."""

    evaluator: str
    status: str
    """success, failure or error."""
    said: str = ""


class _Answer(msgspec.Struct, frozen=True):
    found: tuple[Finding, ...] = ()
    error: str = ""
    version: str = ""


class NoFinding(Exception):
    """The package came to no end with a question, for this reason."""


class _TooLate(NoFinding):
    """It was not heard in time."""


class Examiner(Protocol):
    async def examine(
        self, evaluation: Evaluation, response: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], instruction: str
    ) -> tuple[Finding, ...]:
        """What each evaluator finds, in their order.

        Raises:
            NoFinding: the package failed, or did not come to an end.
            JudgeError: its process could not be asked.
        """
        ...


class ProcessExaminer:
    """Satisfies `Examiner`; opened by `open_examiner`."""

    def __init__(self, python: str, *, answer_s: float = _ANSWER_S) -> None:
        self._command = [python or sys.executable, "-P", str(_SCRIPT), str(answer_s)]
        self._answer_s = answer_s
        self._asking = anyio.Lock()
        self._process: Process | None = None
        self._said: BufferedByteReceiveStream | None = None

    async def examine(
        self, evaluation: Evaluation, response: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], instruction: str
    ) -> tuple[Finding, ...]:
        asked = {
            "evaluation": msgspec.to_builtins(evaluation),
            "response": response,
            "entries": entries,
            "instruction": instruction,
        }
        # Not msgspec's: an answer may hold numbers that JSON does not know.
        question = json.dumps(asked).encode() + b"\n"
        if len(question) > _LONGEST_QUESTION:
            raise NoFinding(f"answer and traffic have {len(question):,} bytes")
        async with self._asking:
            if self._process is None:
                await self.start()
            answer = await self._asked(question)
        if answer.error:
            raise NoFinding(answer.error)
        return answer.found

    async def start(self) -> None:
        """
        Raises:
            ConfigurationError: the package is not installed, or is of another version.
            JudgeError: its process did not come up this time.
        """
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        try:
            self._process = await start_process(self._command, stderr=subprocess.DEVNULL, env=environment)
        except OSError as error:
            if error.errno in NO_PROGRAM:
                raise _uninstalled(self._command[0], error.strerror or str(error)) from error
            raise JudgeError(f"the process of webarena-verified cannot be started: {error.strerror or error}") from error
        assert self._process.stdout is not None
        self._said = BufferedByteReceiveStream(self._process.stdout)
        try:
            greeting = await self._heard(_START_S)
        except _TooLate as error:
            raise JudgeError(f"the process of webarena-verified did not come up within {_START_S:g} s") from error
        except NoFinding as error:
            raise _uninstalled(self._command[0], str(error)) from error
        if greeting.version != VERSION:
            await self.close()
            raise _uninstalled(self._command[0], f"webarena-verified {greeting.version} is there")

    async def _asked(self, question: bytes) -> _Answer:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            with anyio.fail_after(_HANGS_S):
                await self._process.stdin.send(question)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError) as error:
            await self.close()
            raise JudgeError("the process of webarena-verified ended; it is started again") from error
        except BaseException:
            await self.close()
            raise
        try:
            return await self._heard(_HANGS_S)
        except _TooLate as error:
            raise JudgeError(f"the process of webarena-verified did not answer within {_HANGS_S:g} s") from error

    async def _heard(self, patience_s: float) -> _Answer:
        """Raises `NoFinding`, or `JudgeError` where somebody else ended the process; then it is gone."""
        assert self._process is not None
        assert self._said is not None
        answer: _Answer | None = None
        why: NoFinding | JudgeError = _TooLate("it did not answer in time")
        try:
            with anyio.move_on_after(patience_s):
                try:
                    line = await self._said.receive_until(b"\n", _LONGEST_LINE)
                    answer = msgspec.json.decode(line, type=_Answer)
                except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError):
                    why = self._ended(await self._process.wait())
        except (anyio.DelimiterNotFound, msgspec.MsgspecError) as error:
            why = NoFinding(f"what it said cannot be read ({error})")
        finally:
            if answer is None:
                await self.close()
        if answer is None:
            raise why
        return answer

    def _ended(self, status: int) -> NoFinding | JudgeError:
        if status < 0 and -status not in _OWN_ENDS:
            return JudgeError(f"the process of webarena-verified was ended by signal {-status}; it is started again")
        return NoFinding(f"it ended, or took more than {self._answer_s:g} s of processor time")

    async def close(self) -> None:
        process, self._process, self._said = self._process, None, None
        if process is None:
            return
        with anyio.CancelScope(shield=True):
            with suppress(ProcessLookupError):
                process.kill()
            await process.aclose()


def _uninstalled(python: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{python} cannot run webarena-verified {VERSION} ({why}): install millrace[webarena] here, or "
        f"webarena-verified=={VERSION} into an environment of its own, and name its Python in judge_config.webarena_python"
    )


@asynccontextmanager
async def open_examiner(python: str) -> AsyncIterator[ProcessExaminer]:
    """Of the environment of `python`; empty: this one. Raises `ConfigurationError`, `JudgeError`."""
    examiner = ProcessExaminer(python)
    try:
        await examiner.start()
        yield examiner
    finally:
        await examiner.close()
