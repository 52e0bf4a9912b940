"""The run's versions on CHECKPOINTS: which is the newest, and announcing the next. Create-only: one trainer a run."""

from functools import partial
from pathlib import Path

import anyio.to_thread

from bus.ports import Bus, Expect
from bus.subjects import Subjects
from schemas.errors import ChainConflict, CheckpointCorrupt, TrainerError
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint
from trainer.checkpoints import hash_files
from trainer.patience import patiently


class Announcements:
    """Reads and writes the run's checkpoint records."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects

    async def newest(self) -> Checkpoint | None:
        names = self._subjects
        record = await patiently(partial(self._bus.last, names.checkpoints, names.everything("checkpoint")))
        return record.message if record is not None and isinstance(record.message, Checkpoint) else None

    async def all(self) -> list[Checkpoint]:
        """Every announced version, oldest first."""
        names = self._subjects
        records = await patiently(partial(self._bus.history, names.checkpoints, names.everything("checkpoint")))
        return [record.message for record in records if isinstance(record.message, Checkpoint)]

    async def announced(self, version: PolicyVersion) -> Checkpoint:
        """Raises `CheckpointCorrupt` when the version was never announced."""
        record = await patiently(partial(self._bus.last, self._subjects.checkpoints, self._subjects.checkpoint(version)))
        if record is None or not isinstance(record.message, Checkpoint):
            raise CheckpointCorrupt(f"version {version} of run {self._subjects.run} was never announced: begin a new run")
        return record.message

    async def announce_base(self, base: Path) -> Checkpoint:
        """Announces the model that the run starts from as version 0."""
        first = Checkpoint(
            run=self._subjects.run,
            version=PolicyVersion(0),
            uri=base.as_uri(),
            files=await anyio.to_thread.run_sync(hash_files, base),
            parent=None,
            trainer_step=0,
            judged_seq=0,
        )
        await self.announce(first)
        return first

    async def announce(self, checkpoint: Checkpoint) -> None:
        """Returns once the server has stored it.

        Raises:
            TrainerError: another trainer announced this version.
        """
        subject = self._subjects.checkpoint(checkpoint.version)
        expect = Expect(subject, 0)
        try:
            await patiently(partial(self._bus.append, self._subjects.checkpoints, subject, checkpoint, expect=expect))
        except ChainConflict as error:
            raise TrainerError(
                f"version {checkpoint.version} of run {self._subjects.run} was announced by another trainer meanwhile: a run "
                "has one trainer; stop one of the two, and this one continues from the newest version when it is started again"
            ) from error
