"""Going back: the next version is made of the good one's files, byte for byte, as if a trainer resumed from there."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread
import msgspec

from bus.lineage import Lineage, announced, confirmed
from bus.ports import Bus
from bus.subjects import Subjects
from schemas.errors import CheckpointCorrupt
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint
from trainer.retrying import until_available
from trainer.versions.checkpoints import STATE_FILE, TrainerState, folder_of, holds_optimizer, read_trainer_state, verify


@dataclass(frozen=True)
class CopiedFiles:
    """An `EngineFiles`: what the engine wrote into another version's folder."""

    folder: Path
    optimizer: bool
    """False: weights alone. Whatever else the run's base model brought along is not this run's."""

    def write(self, folder: Path) -> None:
        for file in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            name = file.relative_to(self.folder)
            if name.as_posix() == STATE_FILE or (name.parts[0] == "trainer" and not self.optimizer):
                continue
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / name)


@dataclass(frozen=True)
class GoodVersion:
    """An announced version, its files verified."""

    checkpoint: Checkpoint
    folder: Path
    learnt: TrainerState
    """As its trainer left it: replay, groups and updates, and nothing of what came after."""

    @classmethod
    async def read(cls, bus: Bus, subjects: Subjects, version: int) -> "GoodVersion":
        """Raises `CheckpointCorrupt` when its record or its files are gone."""

        async def look() -> Checkpoint | None:
            return await announced(await confirmed(Lineage(), bus, subjects), bus, subjects, PolicyVersion(version))

        checkpoint = await until_available(look)
        if checkpoint is None:
            raise CheckpointCorrupt(f"version {version}, the last good one, is no longer announced: begin a new run")
        folder = folder_of(checkpoint.uri)
        await anyio.to_thread.run_sync(verify, folder, checkpoint.files)
        learnt = TrainerState(version=0, num_trajectories=0, num_updates=0)
        if version > 0:
            learnt = await anyio.to_thread.run_sync(read_trainer_state, folder)
        return cls(checkpoint, folder, learnt)

    @property
    def is_whole(self) -> bool:
        """Whether it brings its own optimizer's state along."""
        return self.checkpoint.version > 0 and holds_optimizer(self.folder)

    @property
    def files(self) -> CopiedFiles:
        return CopiedFiles(self.folder, optimizer=self.checkpoint.version > 0)

    def state_of(self, present: TrainerState) -> TrainerState:
        """What was learnt as of the good version; what was consumed and counted as of now."""
        return msgspec.structs.replace(
            self.learnt,
            version=present.version,
            position=present.position,
            consumed=present.consumed,
            num_trajectories=present.num_trajectories,
            guard=present.guard,
            whole=present.version if self.is_whole else self.learnt.whole,
            # Groups follow the judgements: the feeder counts on theirs, and members that must not be trained on are left out.
            carried=present.carried,
            successes=present.successes,
        )
