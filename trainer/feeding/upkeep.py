"""Sees to it that everything that was admitted goes on, and gives up what nothing can come of any more."""

from collections.abc import Collection
from functools import partial

import structlog

from bus.ports import Bus
from bus.side_by_side import side_by_side
from bus.subjects import Subjects
from schemas.ids import EpisodeId
from schemas.messages import FeederMemory, Split
from trainer.feeding.admission import Admitter
from trainer.feeding.feeder_state import FeederState
from trainer.retrying import until_available

_LOOK_AT_ONCE = 16
_log = structlog.get_logger()


class Upkeep:
    """Of what one feeder knows to be under way; what is given up is never begun again, and others are admitted instead."""

    def __init__(self, bus: Bus, subjects: Subjects, admitter: Admitter, state: FeederState) -> None:
        self._bus = bus
        self._subjects = subjects
        self._admitter = admitter
        self._state = state

    async def finish(self, memory: FeederMemory) -> None:
        """Admits what the feeder before was about to admit, as far as it did not."""
        for task in memory.intended:
            if not await until_available(partial(self._admitter.finish, task, memory.intended_seq, memory.intended_chains)):
                self.give_up([task.episode], "it may have been played, and its records have aged out")

    async def audit(self) -> None:
        """Looks at everything that is under way."""
        state, names = self._state, self._subjects
        trajectories = await until_available(partial(self._bus.stream_state, names.trajectories))
        judged = await until_available(partial(self._bus.stream_state, names.judged))
        aged = state.aged_out(first_trajectory=trajectories.first_seq, first_judgement=judged.first_seq)
        self.give_up(aged, "its records have aged out before they were used")
        lost: list[EpisodeId] = []

        async def look(admitted: tuple[EpisodeId, Split]) -> None:
            if not await until_available(partial(self._admitter.repair, *admitted)):
                lost.append(admitted[0])

        training = [(episode, Split.TRAIN) for episode in state.under_way]
        evaluation = [(episode, Split.EVAL) for episode in state.rounds.missing]
        await side_by_side([*training, *evaluation], look, num_loops=_LOOK_AT_ONCE)
        self.give_up(lost, "its chain has aged out and it is queued nowhere")

    def give_up(self, episodes: Collection[EpisodeId], reason: str) -> None:
        for episode in episodes:
            _log.warning("episode_given_up", episode=episode, reason=reason)
        self._state.give_up(episodes)
