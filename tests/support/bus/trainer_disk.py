"""A trainer that announces versions from a disk that policies never see, and what a policy fetches them by."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agents.weight_sources import WeightSources
from bus.ports import Bus
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint
from tests.contract.backends import SUBJECTS
from tests.support.bus.weight_world import CONFIG, checkpoint_of, folder_of, version_files, write
from trainer.versions.announcements import Announcements
from trainer.versions.weight_publishing import WeightPublisher


class HidingPublisher(WeightPublisher):
    """Takes the folder away before anybody hears of it, as if it were on another machine's disk."""

    async def send(self, folder: Path, checkpoint: Checkpoint, announced: Sequence[Checkpoint] = ()) -> None:
        await super().send(folder, checkpoint, announced)
        shutil.rmtree(folder)


@dataclass
class TrainerDisk:
    """A trainer that announces versions from a folder that policies never see."""

    bus: Bus
    root: Path

    @property
    def announcements(self) -> Announcements:
        return Announcements(self.bus, SUBJECTS, WeightPublisher(self.bus, SUBJECTS, CONFIG))

    def written(self, version: int) -> Checkpoint:
        folder = write(folder_of(self.root, version), version_files(version))
        return checkpoint_of(folder, version, version_files(version))

    async def announce(self, version: int, *, base: int | None = None) -> Checkpoint:
        """`base`: it is an adapter of this version."""
        based = None if base is None else PolicyVersion(base)
        checkpoint = msgspec.structs.replace(self.written(version), base=based)
        await Announcements(self.bus, SUBJECTS, HidingPublisher(self.bus, SUBJECTS, CONFIG)).announce(checkpoint)
        return checkpoint

    async def num_written(self) -> int:
        return await self.bus.last_seq(SUBJECTS.weight_chunks)

    async def num_stored(self) -> int:
        return len(await self.bus.subjects(SUBJECTS.weight_chunks, SUBJECTS.everything("weights")))


def sources(bus: Bus, cache: Path, base: Path | None = None) -> WeightSources:
    return WeightSources(bus, SUBJECTS, CONFIG, cache=cache, base=base)
