"""The run's versions on CHECKPOINTS: which is the newest, and announcing the next. Create-only: one trainer a run."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import anyio.to_thread

from bus.ports import Bus, Expect
from bus.subjects import Subjects
from schemas.errors import ChainConflict, CheckpointCorrupt, TrainerError
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint
from trainer.patience import patiently
from trainer.versions.checkpoints import folder_of, hash_files
from trainer.versions.weight_publishing import WeightPublisher


class Announcements:
    """Reads and writes the run's checkpoint records."""

    def __init__(self, bus: Bus, subjects: Subjects, publisher: WeightPublisher | None = None) -> None:
        """`publisher`: where policies get weights over the bus, every version is on it when it is announced."""
        self._bus = bus
        self._subjects = subjects
        self._publisher = publisher

    async def begin(self, base: Path) -> Checkpoint:
        """The version that training goes on from: the newest announced one, or `base`, announced as version 0."""
        newest = await self.newest()
        if newest is None:
            return await self.announce_base(base)
        for version in (*await self._bases([newest]), newest):
            await self._send(version)
        return newest

    async def newest(self) -> Checkpoint | None:
        """As the stream's leader knows it: of a server that lags the trainer would make a version again that is announced."""
        names = self._subjects
        record = await patiently(partial(self._bus.confirmed_last, names.checkpoints, names.everything("checkpoint")))
        return record.message if record is not None and isinstance(record.message, Checkpoint) else None

    async def all(self) -> list[Checkpoint]:
        """Every announced version, oldest first."""
        names = self._subjects
        records = await patiently(partial(self._bus.history, names.checkpoints, names.everything("checkpoint")))
        return [record.message for record in records if isinstance(record.message, Checkpoint)]

    async def announced(self, version: PolicyVersion) -> Checkpoint:
        """Raises `CheckpointCorrupt` when the version was never announced."""
        subject = self._subjects.checkpoint(version)
        record = await patiently(partial(self._bus.confirmed_last, self._subjects.checkpoints, subject))
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
        """Returns once the server has stored it, and removed what has become too old from the bus.

        Raises:
            TrainerError: another trainer announced this version.
        """
        await self._send(checkpoint)
        subject = self._subjects.checkpoint(checkpoint.version)
        expect = Expect(subject, 0)
        try:
            await patiently(partial(self._bus.append, self._subjects.checkpoints, subject, checkpoint, expect=expect))
        except ChainConflict as error:
            raise TrainerError(
                f"version {checkpoint.version} of run {self._subjects.run} was announced by another trainer meanwhile: a run "
                "has one trainer; stop one of the two, and this one continues from the newest version when it is started again"
            ) from error
        if self._publisher is not None:
            kept = [checkpoint, *await self._before(checkpoint.version)]
            await self._publisher.keep([*kept, *await self._bases(kept)])

    async def _send(self, checkpoint: Checkpoint) -> None:
        if self._publisher is not None:
            await self._publisher.send(folder_of(checkpoint.uri), checkpoint)

    async def _before(self, version: PolicyVersion) -> list[Checkpoint]:
        """The other versions that are kept on the bus."""
        assert self._publisher is not None
        return await self._announced(range(max(0, version + 1 - self._publisher.num_kept), version))

    async def _bases(self, checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
        """The whole models that these versions are adapters of."""
        return await self._announced({each.base for each in checkpoints if each.base is not None})

    async def _announced(self, versions: Iterable[int]) -> list[Checkpoint]:
        """As the leader knows them: of what is not among these, the weights are removed."""
        names, found = self._subjects, list[Checkpoint]()
        for version in versions:
            subject = names.checkpoint(PolicyVersion(version))
            record = await patiently(partial(self._bus.confirmed_last, names.checkpoints, subject))
            if record is not None and isinstance(record.message, Checkpoint):
                found.append(record.message)
        return found
