"""Shaping: what is taken off the reward of a training episode for how it was played, never for what came of it.

The format term is VAGEN's idea (arXiv 2510.16907), which pays every turn that can be parsed; here a turn that cannot be parsed
costs, so that a perfect episode keeps its reward of 1. The verdict stays as it is: successes are counted by it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from judges.episode import JudgedEpisode
from judges.judge import Ruling
from schemas.errors import NoVerdict
from schemas.judge_config import ShapingConfig
from schemas.messages import Outcome, RewardPart, Split, Trajectory

FORMAT = "format"
"""-weight x share of the steps whose output could not be parsed."""
LENGTH = "length"
"""-weight x share of the step cap that was used."""
UNREADABLE = "unreadable"
"""-weight, where too many answers in a row ended the episode that could not be parsed."""
LAST_TURN = "last_turn"
"""The reward taken back, where the last step could not be parsed, or never ended its thinking."""


def shaped(ruling: Ruling, trajectory: Trajectory, config: ShapingConfig, unparsed: Sequence[bool] | None = None) -> Ruling:
    """The ruling with one more part for each term that has a weight; without a reward, or of an evaluation episode, as it was.

    `unparsed` says of every step whether its output could not be parsed, so that those steps bear the format term; None: it is
    not known, and the episode's end bears it.
    """
    if ruling.reward is None or trajectory.task.split is not Split.TRAIN:
        return ruling
    terms = tuple(_terms(ruling.reward, trajectory, config, unparsed))
    return replace(ruling, reward=ruling.reward + sum(term.value for term in terms), parts=(*ruling.parts, *terms))


async def shape(ruling: Ruling, episode: JudgedEpisode, config: ShapingConfig) -> Ruling:
    """As `shaped`; reads the chain's steps only where it matters which of them could not be parsed.

    A chain that has aged out changes nothing of the reward: the episode's end bears the format term.
    """
    trajectory = episode.trajectory
    num_steps = trajectory.num_steps
    if ruling.reward is None or trajectory.task.split is not Split.TRAIN or not config.format:
        return shaped(ruling, trajectory, config)
    if trajectory.num_unparsed in (0, num_steps):
        return shaped(ruling, trajectory, config, [trajectory.num_unparsed > 0] * num_steps)
    try:
        steps = await episode.steps()
    except NoVerdict:
        return shaped(ruling, trajectory, config)
    return shaped(ruling, trajectory, config, [not step.parsed for step in steps])


def _terms(
    reward: float, trajectory: Trajectory, config: ShapingConfig, unparsed: Sequence[bool] | None
) -> Iterator[RewardPart]:
    num_steps, max_steps = trajectory.num_steps, trajectory.task.max_steps
    in_form = not trajectory.num_unparsed_last and trajectory.thinking_ended_last
    if config.last_turn and reward > 0 and not in_form:
        yield RewardPart(LAST_TURN, -reward)
    if config.unreadable and trajectory.outcome is Outcome.UNREADABLE:
        yield RewardPart(UNREADABLE, -config.unreadable)
    if config.format and num_steps:
        each = config.format / num_steps
        steps = tuple(-each if failed else 0.0 for failed in unparsed or ())
        yield RewardPart(FORMAT, 0.0 - each * (sum(unparsed) if unparsed is not None else trajectory.num_unparsed), steps)
    if config.length and num_steps:
        each = config.length / max_steps
        yield RewardPart(LENGTH, -each * num_steps, (-each,) * num_steps)
