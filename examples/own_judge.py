"""Judges of one's own. A run that is judged by one of them says so in its configuration:

    judge_config: {judge: "examples/own_judge.py:one_number_v1"}

and by both, so that a success has the right number and took no refused action:

    judge_config:
      judge: clean_number_v1
      composites:
        clean_number_v1:
          parts: {"examples/own_judge.py:one_number_v1": 1, "examples/own_judge.py:clean_steps_v1": 1}
"""

from judges.episode import JudgedEpisode
from judges.named import judge
from judges.programmatic.numbers import numbers_of
from schemas.errors import NoVerdict
from schemas.messages import ActionEffect


@judge("one_number_v1")
def one_number(episode: JudgedEpisode) -> bool:
    """Success when the answer commits itself to one number, the reference's: `12 or 13` is right about nothing."""
    trajectory = episode.trajectory
    if not trajectory.task.reference_answer:
        raise NoVerdict(f"task {trajectory.task.task} has no reference answer")
    return numbers_of(trajectory.answer) == numbers_of(trajectory.task.reference_answer)


@judge("clean_steps_v1")
async def clean_steps(episode: JudgedEpisode) -> float:
    """The share of the observations that no refused action led to: reads the chain, so it is `async`."""
    seen = await episode.observations()
    return sum(each.effect is not ActionEffect.REFUSED for each in seen) / len(seen)
