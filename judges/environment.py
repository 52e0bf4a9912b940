"""The judge that takes the environment's own reward, as benchmark pages give it."""

from judges.judge import Ruling
from schemas.errors import JudgeError
from schemas.messages import StageVerdict, Trajectory, Verdict

_FULL_REWARD = 1.0


class EnvironmentJudge:
    """Success is the environment's full reward of 1; the reward itself is passed on as it is."""

    rubric = "environment_v1"

    async def judge(self, trajectory: Trajectory) -> Ruling:
        reward = trajectory.environment_reward
        if reward is None:
            raise JudgeError(f"episode {trajectory.episode} has no environment reward: its site gives none, use another judge")
        passed = reward >= _FULL_REWARD
        return Ruling(
            verdict=Verdict.SUCCESS if passed else Verdict.FAILURE,
            reward=reward,
            stages=(StageVerdict(stage="environment", passed=passed, reasoning=f"the page gave {reward:g}"),),
        )
