"""What type checkers see of the public API: `mypy` reads this file, nothing runs it."""

from typing import assert_type

from bus import BEGINNING, Item, Run, Stream, connect
from judges.episode import JudgedEpisode
from judges.function_judge import FunctionJudge
from judges.named import judge
from schemas.messages import Checkpoint, Heartbeat, JudgeCall, Judgement, Observation, StepRequest, Trajectory


async def streams() -> None:
    async with connect("runs/mine") as run:
        assert_type(run, Run)
        assert_type(run.trajectories(start=BEGINNING, durable="mine"), Stream[Trajectory])
        assert_type(run.judgements(min_reward=0.5), Stream[Judgement])
        assert_type(run.calls(), Stream[JudgeCall])
        assert_type(run.checkpoints(version=3), Stream[Checkpoint])
        assert_type(run.observations(episode="e"), Stream[Observation])
        assert_type(run.steps(), Stream[StepRequest])
        assert_type(run.heartbeats(), Stream[Heartbeat])
        async for item in run.trajectories():
            assert_type(item, Item[Trajectory])
            assert_type(item.message, Trajectory)


@judge("right_price_v1")
def right_price(episode: JudgedEpisode) -> bool:
    assert_type(episode.trajectory, Trajectory)
    return episode.trajectory.answer == "12.90"


@judge("slow_price_v1")
async def slow_price(episode: JudgedEpisode) -> float:
    return float(episode.trajectory.answer == "12.90")


def judges() -> None:
    assert_type(right_price, FunctionJudge)
    assert_type(slow_price, FunctionJudge)
