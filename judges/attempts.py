"""Asks a judge until it rules: what becomes of a judge's errors, whatever the judge is and whoever wrote it."""

from collections.abc import Iterator

import anyio
import structlog

from bus.settlement import retry_delay_s
from judges.episode import JudgedEpisode
from judges.judge import Judge, Ruling, undecided
from schemas.errors import Disposition, JudgeError, MillraceError, NoVerdict

_log = structlog.get_logger()
_PATIENCE_S = 600.0
"""From the first failure on, a judge is asked again for so long."""


async def rule(judge: Judge, episode: JudgedEpisode, *, max_attempts: int) -> Ruling:
    """The judge's ruling; undecided when it has none.

    A judge that failed is asked again here, for deliveries count kills and hand-backs too.

    Raises:
        MillraceError: of the bus or the configuration; the trajectory is as good as not begun.
    """
    deadline = float("inf")
    num_asked = 0
    while True:
        try:
            return await _asked(judge, episode)
        except JudgeError as error:
            num_asked += 1
            delay_s = retry_delay_s(num_asked)
            deadline = min(deadline, anyio.current_time() + _PATIENCE_S)
            log = _log.bind(episode=episode.trajectory.episode, judge=judge.name, reason=str(error), asked=num_asked)
            if isinstance(error, NoVerdict):
                log.warning("no_verdict")
                return undecided(str(error))
            if num_asked >= max_attempts or anyio.current_time() + delay_s > deadline:
                log.error("judge_gave_up")
                return undecided(f"asked {num_asked} times, the judge failed: {error}")
            log.warning("judge_asked_again", delay_s=delay_s)
        await anyio.sleep(delay_s)


async def _asked(judge: Judge, episode: JudgedEpisode) -> Ruling:
    """Raises `MillraceError`, whatever the judge raises."""
    try:
        ruling: object = await judge.judge(episode)
    except Exception as raised:
        failure = _gravest(raised)
        if not isinstance(failure, MillraceError):
            _log.error("judge_raised", episode=episode.trajectory.episode, judge=judge.name, exc_info=failure)
            raise JudgeError(f"{type(failure).__name__}: {failure}") from raised
        if failure.disposition is Disposition.REJECT:
            raise NoVerdict(str(failure)) from raised
        raise failure from raised
    if not isinstance(ruling, Ruling):
        raise JudgeError(f"{judge.name} returned {type(ruling).__name__} where a Ruling belongs")
    return ruling


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
