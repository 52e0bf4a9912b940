"""A published evaluator as a judge: success only where its examination came to its end and says so."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from judges.episode import JudgedEpisode
from judges.judge import Ruling, scored, undecided
from judges.prompt_files import Placeholders, Prompts
from judges.published.hearing import Hearing
from judges.published.material import Material
from judges.published.screenshots import by_step
from judges.rubric.asking import JudgeSession, JudgeSessions
from judges.rubric.copies import Copies
from judges.rubric.moments import untrusted_texts
from judges.rubric.protocol import protocols_of
from judges.rubric.untrusted import fence
from schemas.errors import NoVerdict
from schemas.judge_config import JudgeConfig


@dataclass(frozen=True, slots=True)
class Evaluator:
    """What is one evaluator's own."""

    examine: Callable[[Hearing], Awaitable[bool]]
    """Whether the episode is a success; notes its stages, the one that decides last. Raises `NoVerdict`."""
    placeholders: Placeholders
    """The files of its prompts."""


class PublishedJudge:
    """Reward 1 or 0 as its evaluator finds; no verdict where any of its questions came to none."""

    def __init__(
        self, name: str, evaluator: Evaluator, sessions: JudgeSessions, prompts: Prompts, config: JudgeConfig
    ) -> None:
        self.name = name
        self._evaluator = evaluator
        self._sessions = sessions
        self._prompts = prompts
        self._config = config

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        session = await self._sessions.begin(episode.trajectory)
        ruling = await self._ruling(episode, session)
        return replace(ruling, protocols=protocols_of(self.name, self._prompts, session))

    async def _ruling(self, episode: JudgedEpisode, session: JudgeSession) -> Ruling:
        hearing: Hearing | None = None
        try:
            hearing = await self._hearing(episode, session)
            passed = await self._evaluator.examine(hearing)
        except NoVerdict as error:
            found = hearing.found if hearing else ()
            return undecided(str(error), stages=tuple(found), usage=session.usage)
        return scored(passed=passed, stages=tuple(hearing.found), usage=session.usage)

    async def _hearing(self, episode: JudgedEpisode, session: JudgeSession) -> Hearing:
        """Raises `NoVerdict` when there is nothing to look at."""
        trajectory = episode.trajectory
        observations, steps = await episode.observations(), await episode.steps()
        if not observations:
            raise NoVerdict(f"episode {trajectory.episode} has no screenshot to judge it by")
        return Hearing(
            task=trajectory.task,
            material=Material(self._prompts, fence(trajectory.episode, self._config.rubric), trajectory),
            shots=by_step(observations),
            observations=observations,
            steps=steps,
            session=session,
            copies=Copies((trajectory.answer, *untrusted_texts(observations, steps))),
            num_votes=self._config.num_votes,
        )
