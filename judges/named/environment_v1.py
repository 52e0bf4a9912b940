"""The judge that asks nobody: a task's own checks, else the environment's reward as benchmark pages give it."""

from judges.episode import JudgedEpisode
from judges.judge import OUTCOME, Ruling, undecided
from judges.named import judge
from judges.programmatic.checks import evaluate, naming
from schemas.errors import JudgeError
from schemas.messages import CheckKind, RewardPart, StageVerdict, Trajectory, Verdict

_FULL_REWARD = 1.0


@judge("environment_v1")
class EnvironmentJudge:
    """A task with checks succeeds with reward 1 when all of them hold, else gets 0; if its page could not be read, neither.

    Where there are none, success is what the environment takes for it, else its full reward of 1; the reward itself is passed
    on as it is, with what each step earned of it.
    """

    name: str

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        trajectory = episode.trajectory
        return _by_checks(trajectory) if trajectory.task.checks else _by_environment(trajectory)


def _by_checks(trajectory: Trajectory) -> Ruling:
    checks = trajectory.task.checks
    with naming(trajectory.task.task):
        stages = evaluate(checks, trajectory.answer, trajectory.final_state)
    if trajectory.final_state is None:
        unread = [check.kind is not CheckKind.ANSWER for check in checks]
        # A wrong answer is a failure whatever the page was; a page that nobody could look at is none.
        if any(unread) and all(stage.passed for stage, is_unread in zip(stages, unread, strict=True) if not is_unread):
            return undecided("the page could not be read when the episode ended, so that its checks say nothing")
    passed = all(stage.passed for stage in stages)
    return Ruling(
        verdict=Verdict.SUCCESS if passed else Verdict.FAILURE,
        reward=_FULL_REWARD if passed else 0.0,
        stages=stages,
    )


def _by_environment(trajectory: Trajectory) -> Ruling:
    reward = trajectory.environment_reward
    if reward is None:
        raise JudgeError(f"episode {trajectory.episode} has no environment reward: its site gives none, use another judge")
    success = trajectory.environment_success
    passed = reward >= _FULL_REWARD if success is None else success
    return Ruling(
        verdict=Verdict.SUCCESS if passed else Verdict.FAILURE,
        reward=reward,
        parts=(RewardPart(OUTCOME, reward, trajectory.environment_step_rewards),),
        stages=(StageVerdict(stage="environment", passed=passed, reasoning=f"the page gave {reward:g}"),),
    )
