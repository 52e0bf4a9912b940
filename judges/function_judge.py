"""A judge that is a person's function."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable, iscoroutinefunction

import anyio
import anyio.to_thread

from judges.episode import JudgedEpisode
from judges.judge import Ruling, scored
from schemas.errors import JudgeError, NoVerdict
from schemas.ids import subject_token
from schemas.messages import Verdict

_LIMIT_S = 600.0
"""For one episode."""
Found = bool | float | Ruling
"""Success or failure; a reward from 0 to 1, of which only 1 is a success; or everything that a judge may say."""
JudgingFunction = Callable[[JudgedEpisode], Found | Awaitable[Found]]


class FunctionJudge:
    """Rules as its function says. What the function raises goes on; what it may not return is a judge error.

    A plain function runs in a thread, where it holds nobody up; one that reads the chain is `async`. Neither is waited for
    longer than ten minutes.
    """

    def __init__(self, name: str, function: JudgingFunction) -> None:
        """Raises `ConfigurationError` for a name that cannot stand in a subject."""
        self.name = subject_token(name, what="the judge's name")
        self._function = function

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        with anyio.move_on_after(_LIMIT_S) as scope:
            found = await self._call(episode)
        if scope.cancelled_caught:
            raise JudgeError(f"{self.name} came to no end within {_LIMIT_S:g} s")
        return self._ruling(found)

    async def _call(self, episode: JudgedEpisode) -> object:
        if iscoroutinefunction(self._function):
            return await self._function(episode)
        found = await anyio.to_thread.run_sync(self._function, episode, abandon_on_cancel=True)
        return await found if isawaitable(found) else found

    def _ruling(self, found: object) -> Ruling:
        match found:
            case Ruling():
                return found
            case bool():
                return scored(passed=found)
            case int() | float() if 0 <= found <= 1:
                verdict = Verdict.SUCCESS if found >= 1 else Verdict.FAILURE
                return Ruling(verdict=verdict, reward=float(found))
            case _:
                raise NoVerdict(f"{self.name} returned {found!r}: return True or False, a reward from 0 to 1, or a Ruling")
