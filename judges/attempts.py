"""Asks a judge until it rules: what becomes of a judge's errors, whatever the judge is and whoever wrote it."""

from collections.abc import Iterator
from dataclasses import replace

import anyio
import structlog
from msgspec import structs
from structlog.typing import FilteringBoundLogger

from bus.settlement import retry_delay_s
from judges.episode import JudgedEpisode
from judges.judge import Judge, Ruling, undecided
from schemas.errors import Disposition, JudgeError, MillraceError, NoVerdict
from schemas.messages import StageVerdict
from schemas.text import valid

_log = structlog.get_logger()
_PATIENCE_S = 600.0
"""From the first failure on, a judge is asked again for so long."""
_LONGEST = 20_000
"""Characters of a reasoning, or of an error."""


async def rule(judge: Judge, episode: JudgedEpisode, *, max_attempts: int) -> Ruling:
    """The judge's ruling; undecided when it has none. Never curable.

    A judge that failed is asked again here, for deliveries count kills and hand-backs too.

    Raises:
        MillraceError: of the bus or the configuration; the trajectory is as good as not begun.
    """
    deadline = float("inf")
    num_asked = 0
    while True:
        ruling = await ask_once(judge, episode)
        if not ruling.curable:
            return ruling
        num_asked += 1
        delay_s = retry_delay_s(num_asked)
        deadline = min(deadline, anyio.current_time() + _PATIENCE_S)
        log = _log.bind(episode=episode.trajectory.episode, judge=judge.name, reason=ruling.error, asked=num_asked)
        if num_asked >= max_attempts or anyio.current_time() + delay_s > deadline:
            log.error("judge_gave_up")
            return replace(ruling, error=f"asked {num_asked} times, the judge failed: {ruling.error}", curable=False)
        log.warning("judge_asked_again", delay_s=delay_s)
        await anyio.sleep(delay_s)


async def ask_once(judge: Judge, episode: JudgedEpisode) -> Ruling:
    """What one attempt came to, curable where another may come to more.

    Raises:
        MillraceError: of the bus or the configuration.
    """
    try:
        ruling: object = await judge.judge(episode)
    except Exception as raised:  # noqa: BLE001 - the boundary to whatever judge there is; it is logged or goes on
        return _without_verdict(raised, _log.bind(episode=episode.trajectory.episode, judge=judge.name))
    if not isinstance(ruling, Ruling):
        return undecided(f"{judge.name} returned {type(ruling).__name__} where a Ruling belongs", curable=True)
    return _worded(ruling)


def _worded(ruling: Ruling) -> Ruling:
    """With valid, bounded text, whoever wrote the judge and whatever a model said; what is no text is found out later."""
    stages = tuple(
        structs.replace(stage, stage=_text(stage.stage), reasoning=_text(stage.reasoning))
        if isinstance(stage, StageVerdict)
        else stage
        for stage in ruling.stages
    )
    return replace(ruling, stages=stages, error=_text(ruling.error))


def _text(written: str) -> str:
    return valid(written, _LONGEST) if isinstance(written, str) else written


def _without_verdict(raised: Exception, log: FilteringBoundLogger) -> Ruling:
    """Raises `MillraceError` when it is no failure of the judge."""
    failure = _gravest(raised)
    if not isinstance(failure, MillraceError):
        log.error("judge_raised", exc_info=failure)
        return undecided(valid(f"{type(failure).__name__}: {failure}", _LONGEST), curable=True)
    if isinstance(failure, NoVerdict) or failure.disposition is Disposition.REJECT:
        log.warning("no_verdict", reason=str(failure))
        return undecided(str(failure))
    if isinstance(failure, JudgeError):
        return undecided(str(failure), curable=True)
    raise failure from raised


def _gravest(raised: Exception) -> Exception:
    """Of several that a judge's own tasks raised together, the one that decides."""
    return min(_leaves(raised), key=_gravity)


def _leaves(raised: Exception) -> Iterator[Exception]:
    if not isinstance(raised, ExceptionGroup):
        yield raised
        return
    for error in raised.exceptions:
        yield from _leaves(error)


def _gravity(error: Exception) -> int:
    """0 is the gravest: what ends the worker; then what nobody foresaw; then what asking again cannot mend."""
    match error:
        case MillraceError(disposition=Disposition.FATAL):
            return 0
        case MillraceError(disposition=Disposition.REJECT) | NoVerdict():
            return 2
        case JudgeError():
            return 3
        case MillraceError():
            return 4
        case _:
            return 1
