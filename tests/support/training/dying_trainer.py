"""A trainer that dies between writing a version and announcing it, without a process of its own."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from bus.memory import MemoryBus
from bus.ports import Expect
from schemas.messages import AnyMessage, Checkpoint
from tests.support.training.trainer_world import SUBJECTS
from trainer.loop import Trainer


class Killed(BaseException):
    """Stands for kill -9 at one moment: nothing of the trainer's own runs after it."""


class KilledAtEveryVersion(MemoryBus):
    """Dies when a version has been written but not announced, once at each."""

    def __init__(self) -> None:
        super().__init__(SUBJECTS)
        self._killed_at: set[str] = set()

    async def append(self, stream: str, subject: str, message: AnyMessage, *, expect: Expect | None = None) -> int:
        if isinstance(message, Checkpoint) and message.version > 0 and subject not in self._killed_at:
            self._killed_at.add(subject)
            raise Killed
        return await super().append(stream, subject, message, expect=expect)


async def run_through_kills(open_trainer: Callable[[], AbstractAsyncContextManager[Trainer]]) -> int:
    """Starts the trainer again as often as it dies, until its run ends; returns how often it died."""
    num_kills = 0
    while True:
        async with open_trainer() as trainer:
            try:
                await trainer.run()
            except Killed:
                num_kills += 1
                continue
        return num_kills
