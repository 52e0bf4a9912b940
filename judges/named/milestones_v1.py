"""The judge that rewards the way as well as the end: each address among a task's checks is earned by the step that reached it.

Of a task with n checks:

- An address (a check of kind `url`) is a milestone. It is reached by the first step that an observation with such an address
  follows, or by the last step when only the final page has it. The step earns 1/n, once, wherever the episode goes next.
- An address that the page where the episode starts has is reached by no step: it is no milestone but, like answers and values
  of the page, a condition on how the episode ends.
- All milestones and all conditions together are a success. It earns at its end what the milestones left, so that its reward
  is 1; any other episode is a failure and keeps what its milestones earned, which is less than 1.

Unlike with `environment_v1`, an address counts although the episode went on from there: checks may name several pages in turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from judges.episode import JudgedEpisode
from judges.judge import OUTCOME, Ruling, undecided
from judges.named import judge
from judges.programmatic.checks import evaluate, naming
from schemas.errors import NoVerdict
from schemas.messages import Check, CheckKind, FinalState, RewardPart, StageVerdict, Trajectory, Verdict

MILESTONES = "milestones"
"""The part of the reward that steps earned."""
_FULL_REWARD = 1.0


@dataclass(frozen=True, slots=True)
class _Found:
    """What became of one check."""

    check: Check
    verdict: StageVerdict
    step: int | None = None
    """That reached the milestone; None: it is none, or was not reached."""


@judge("milestones_v1")
class MilestonesJudge:
    """Full and partial rewards as above; a page that nobody could read, and that alone would decide, is no verdict."""

    name: str

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        """Raises `NoVerdict` when the task has no checks, or the chain has aged out."""
        trajectory = episode.trajectory
        task = trajectory.task
        if not task.checks:
            raise NoVerdict(f"{self.name} needs checks, which task {task.task} has not: add them, or use another judge")
        has_addresses = any(check.kind is CheckKind.URL for check in task.checks)
        urls = [seen.url for seen in await episode.observations()] if has_addresses else []
        with naming(task.task):
            verdicts = evaluate(task.checks, trajectory.answer, trajectory.final_state)
            found = [
                _on_the_way(check, verdict, urls, trajectory) or _Found(check, verdict)
                for check, verdict in zip(task.checks, verdicts, strict=True)
            ]
        return _ruling(trajectory, found)


def _on_the_way(check: Check, at_end: StageVerdict, urls: Sequence[str], trajectory: Trajectory) -> _Found | None:
    """The milestone, if some step reached it."""
    state = trajectory.final_state
    if check.kind is not CheckKind.URL or not trajectory.num_steps or not urls or _verdict(check, urls[0]).passed:
        return None
    for index, url in enumerate([*urls, *([state.url] if state is not None else ())]):
        verdict = _verdict(check, url)
        if verdict.passed:
            step = min(index, trajectory.num_steps) - 1
            return _Found(check, StageVerdict(at_end.stage, True, f"after step {step}, {verdict.reasoning}"), step)
    return None


def _verdict(check: Check, url: str) -> StageVerdict:
    (verdict,) = evaluate((check,), "", FinalState(url=url, title=""))
    return verdict


def _ruling(trajectory: Trajectory, found: Sequence[_Found]) -> Ruling:
    stages = tuple(each.verdict for each in found)
    if trajectory.final_state is None:
        unread = [each.step is None and each.check.kind is not CheckKind.ANSWER for each in found]
        if any(unread) and all(stage.passed for stage, is_unread in zip(stages, unread, strict=True) if not is_unread):
            return undecided("the page could not be read when the episode ended, so that its checks say nothing")
    passed = all(stage.passed for stage in stages)
    steps = [0.0] * trajectory.num_steps
    for each in found:
        if each.step is not None:
            steps[each.step] += _FULL_REWARD / len(found)
    on_the_way = sum(each.step is not None for each in found) / len(found)
    reward = _FULL_REWARD if passed else on_the_way
    parts = (RewardPart(MILESTONES, on_the_way, tuple(steps)),) if on_the_way else ()
    return Ruling(
        verdict=Verdict.SUCCESS if passed else Verdict.FAILURE,
        reward=reward,
        stages=stages,
        parts=(*parts, RewardPart(OUTCOME, reward - on_the_way)),
    )
