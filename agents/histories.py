"""Caches the steps of the episodes that a policy worker answers, and reads what another worker did.

Invariant: a history handed out is the chain before the observation, record for record, less what no later prompt shows.
Episode, attempt and number of rounds are enough to know it by: a chain accepts one answer to each step of an attempt, and
nothing is remembered that was not accepted or read.
"""

import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from agents.context import Round
from bus import chain
from bus.ports import Bus, Record
from bus.subjects import Subjects
from schemas.context_config import ContextConfig
from schemas.errors import PolicyError
from schemas.ids import EpisodeId
from schemas.messages import Observation, Screenshot, StepRequest, Task

_FLAT_BYTES = 3_000
"""Of one round's objects."""


@dataclass(frozen=True, slots=True)
class History:
    """One attempt at an episode: its task and every round so far, oldest first."""

    task: Task
    attempt: int
    rounds: tuple[Round, ...]

    @property
    def num_bytes(self) -> int:
        """In memory, nearly."""
        return sum(_num_bytes(round_) for round_ in self.rounds)


class Histories:
    """The most recently answered episodes, in at most `max_bytes`. What was sampled is let go of but for its words, and of a
    round that has left the window its answer and screenshot too: what no prompt shows."""

    def __init__(self, bus: Bus, subjects: Subjects, *, context: ContextConfig, max_bytes: int) -> None:
        self._bus = bus
        self._subjects = subjects
        self._context = context
        self._max_bytes = max_bytes
        self._kept: OrderedDict[EpisodeId, History] = OrderedDict()
        self.num_bytes = 0

    async def before(self, observation: Observation) -> History:
        """The history that `observation` continues: from memory, or read anew from the chain.

        Raises:
            PolicyError: the chain cannot be seen whole up to the observation (a lagging replica, or records that aged out).
        """
        kept = self._kept.get(observation.episode)
        if kept is not None and (kept.attempt, len(kept.rounds)) == (observation.attempt, observation.step):
            return kept
        return await self._rebuild(observation)

    def add(self, history: History, round_: Round) -> None:
        """Remembers an answer of this worker's own, once the chain has accepted it."""
        rounds = self._light((*history.rounds, round_))
        grown = History(task=history.task, attempt=history.attempt, rounds=rounds)
        if (before := self._kept.pop(round_.observation.episode, None)) is not None:
            self.num_bytes -= before.num_bytes
        self._kept[round_.observation.episode] = grown
        self.num_bytes += grown.num_bytes
        while self.num_bytes > self._max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self.num_bytes -= oldest.num_bytes

    async def _rebuild(self, observation: Observation) -> History:
        episode, attempt = observation.episode, observation.attempt
        record = await chain.read_task(self._bus, self._subjects, episode)
        if record is None or not isinstance(record.message, Task):
            raise PolicyError(f"the task of {episode} cannot be seen")
        rounds: tuple[Round, ...] = ()
        if observation.step > 0:
            rounds = _rounds_before(observation, await chain.history(self._bus, self._subjects, episode, attempt))
        return History(task=record.message, attempt=attempt, rounds=self._light(rounds))

    def _light(self, rounds: tuple[Round, ...]) -> tuple[Round, ...]:
        last = len(rounds) - self._context.num_rounds
        left = _not_shown if self._context.keeps_turns else _left_the_window
        answered = map(_answered, rounds)
        return tuple(left(round_) if index < last else round_ for index, round_ in enumerate(answered))


def _rounds_before(observation: Observation, records: Sequence[Record]) -> tuple[Round, ...]:
    """The rounds 0 to n - 1 before observation n, from the records of its attempt.

    Raises:
        PolicyError: one of them is missing.
    """
    seen, done = dict[int, Observation](), dict[int, StepRequest]()
    for record in records:
        match record.message:
            case Observation() as message:
                seen[message.step] = message
            case StepRequest() as message:
                done[message.step] = message
    steps = range(observation.step)
    missing = [step for step in steps if step not in seen or step not in done]
    if missing:
        raise PolicyError(f"step {missing[0]} of {observation.episode}, attempt {observation.attempt}, cannot be seen")
    return tuple(Round(seen[step], done[step]) for step in steps)


def _answered(round_: Round) -> Round:
    """Without what a prompt says of its current observation only, and without what is there to train on."""
    observation, step = round_.observation, round_.step
    if observation.elements or observation.accessibility_tree or observation.page_errors or observation.tabs:
        observation = msgspec.structs.replace(observation, elements=(), accessibility_tree="", page_errors=(), tabs=())
    if step.prompt_tokens or step.completion_tokens or step.logprobs:
        step = msgspec.structs.replace(step, prompt_tokens=(), completion_tokens=(), logprobs=())
    return Round(observation, step)


def _not_shown(round_: Round) -> Round:
    """The round stays a turn; its screenshot is no longer shown."""
    observation = round_.observation
    if not observation.screenshot.data:
        return round_
    screenshot = Screenshot(data=b"", media_type=observation.screenshot.media_type, width=0, height=0)
    return Round(msgspec.structs.replace(observation, screenshot=screenshot), round_.step)


def _left_the_window(round_: Round) -> Round:
    """A line at most says what was done; screenshot and answer are no longer shown."""
    seen, step = _not_shown(round_).observation, round_.step
    if not seen.page_text and not step.response:
        return Round(seen, step)
    return Round(msgspec.structs.replace(seen, page_text=""), msgspec.structs.replace(step, response=""))


def _num_bytes(round_: Round) -> int:
    """What can be large, and a flat rate for the rest."""
    seen, step = round_.observation, round_.step
    said = [text for result in seen.earlier_results for text in (result.error, result.hit, *result.changes)]
    texts = (seen.url, seen.title, seen.error, seen.hit, *seen.changes, seen.page_text, *said, step.response)
    acted = [action.text for action in step.actions]
    return _FLAT_BYTES + len(seen.screenshot.data) + sum(map(sys.getsizeof, (*texts, *acted)))
