"""The run's versions on CHECKPOINTS: which is the newest, and announcing the next. Create-only: one trainer a run."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import anyio.to_thread
import structlog

from bus.lineage import NUM_NEWEST, Lineage, announced, confirmed
from bus.ports import Bus, Expect
from bus.skipping import skip
from bus.subjects import Subjects
from schemas.errors import ChainConflict, CheckpointCorrupt, MessageCorrupt, TrainerError
from schemas.ids import PolicyVersion
from schemas.messages import Checkpoint
from trainer.retrying import until_available
from trainer.versions.checkpoints import folder_of, hash_model, require_no_versions, why_hollow
from trainer.versions.weight_publishing import WeightPublisher

_MOST_LEFT_OUT = 3
"""Versions before the newest that are looked at: where more are gone, it is their disk that is not there."""
_log = structlog.get_logger()


class Announcements:
    """Reads and writes the run's checkpoint records."""

    def __init__(self, bus: Bus, subjects: Subjects, publisher: WeightPublisher | None = None) -> None:
        """`publisher`: where policies get weights over the bus, every version is on it when it is announced."""
        self._known = Lineage(NUM_NEWEST if publisher is None else max(NUM_NEWEST, publisher.num_kept))
        self._own: dict[PolicyVersion, Checkpoint] = {}
        """What this trainer went on from, and what it announced since, as far as that is kept."""
        self._hollow: list[Checkpoint] = []
        """Announcements that this trainer found nothing behind, whatever it has written there since."""
        self._bus = bus
        self._subjects = subjects
        self._publisher = publisher

    async def begin(self, base: Path, root: Path) -> Checkpoint:
        """The version that training goes on from: the newest announced one, or `base`, announced as version 0.

        Raises:
            TrainerError: nothing is announced, though `root`, where versions are written, holds some.
        """
        newest = await self.newest()
        whole = await self._whole(newest) if newest is not None else None
        if newest is None or whole is None:
            require_no_versions(root, self._subjects.run)
            return await self.announce_base(base, root)
        known = (await self._lineage()).known
        self._own = {version: each for version, each in known.items() if version < whole.version} | {whole.version: whole}
        if whole.version == newest.version and whole != newest:
            await self.announce(whole)
        for version in (*await self._bases([whole]), whole):
            await self._send(version)
        return whole

    async def _whole(self, newest: Checkpoint) -> Checkpoint | None:
        """The version itself; where there is nothing behind its announcement, the one that training can go on from instead.

        None: the run has not begun, and there is nothing behind what is announced of it.
        """
        lineage = await self._lineage()
        before = range(newest.version - 1, max(0, newest.version - 1 - _MOST_LEFT_OUT), -1) or range(newest.version)
        others = (*reversed(lineage.replaced), *(lineage.known.get(PolicyVersion(version)) for version in before))
        for version in (newest, *filter(None, others)):
            reason = why_hollow(version)
            if not reason:
                return version
            self._hollow.append(version)
            skip(self._subjects.checkpoint(version.version), lineage.newest_seq, reason)
        return newest if PolicyVersion(0) in lineage.known else None

    async def newest(self) -> Checkpoint | None:
        return (await self._lineage()).newest

    async def find(self, version: PolicyVersion) -> Checkpoint | None:
        """None: it was never announced."""

        async def look() -> Checkpoint | None:
            return await announced(await self._lineage(), self._bus, self._subjects, version)

        return await until_available(look)

    async def announced(self, version: PolicyVersion) -> Checkpoint:
        """Raises `CheckpointCorrupt` when the version was never announced."""
        found = await self.find(version)
        if found is None:
            raise CheckpointCorrupt(f"version {version} of run {self._subjects.run} was never announced: begin a new run")
        return found

    async def announce_base(self, base: Path, root: Path | None = None) -> Checkpoint:
        """Announces the model that the run starts from as version 0; `root`: where the versions behind it will stand."""
        first = Checkpoint(
            run=self._subjects.run,
            version=PolicyVersion(0),
            uri=base.as_uri(),
            files=await anyio.to_thread.run_sync(hash_model, base),
            parent=None,
            trainer_step=0,
            judged_seq=0,
            root=root.as_uri() if root is not None else "",
        )
        await self.announce(first)
        return first

    async def announce(self, checkpoint: Checkpoint) -> Checkpoint:
        """Returns what was announced, once the server has stored it, and removed what has become too old from the bus.

        Raises:
            TrainerError: another trainer announced this version.
        """
        await self._announce_what_is_lost()
        checkpoint = await self._with_differences(checkpoint)
        await self._send(checkpoint)
        await self._append(checkpoint)
        if self._publisher is not None:
            kept = [checkpoint, *await self._before(checkpoint.version)]
            bases = await self._bases(kept)
            if {base.version for base in bases} == {each.base for each in kept if each.base is not None}:
                await self._publisher.keep([*kept, *bases], [*(await self._lineage()).known.values(), checkpoint])
            else:
                # A replica that lags does not show it: whose files it has is not known, so none are removed.
                _log.warning("weights_not_removed", version=checkpoint.version, reason="its base is not to be seen")
        return checkpoint

    async def _announce_what_is_lost(self) -> None:
        """A server that lost power may have lost what was announced last, and behind a gap nobody takes the next version."""
        if not self._own:
            return
        lineage, names = await self._lineage(), self._subjects
        gone = self._own.keys() - lineage.seqs.keys()
        self._own = {version: each for version, each in self._own.items() if version in gone or version in lineage.known}
        if not gone:
            return
        standing = await until_available(partial(self._bus.subjects, names.checkpoints, names.everything("checkpoint")))
        for version in sorted(gone):
            lost = self._own[version]
            if names.checkpoint(version) not in standing:
                _log.warning("version_announced_again", version=version, reason="the server has lost its announcement")
                if not why_hollow(lost):
                    await self._send(lost)
                await self._append(lost)

    async def _append(self, checkpoint: Checkpoint) -> None:
        """Raises `TrainerError` where another trainer's version stands."""
        try:
            await self._append_in_place(checkpoint)
        except ChainConflict as error:
            raise TrainerError(
                f"version {checkpoint.version} of run {self._subjects.run} was announced by another trainer meanwhile: a run "
                "has one trainer; stop one of the two, and this one continues from the newest version when it is started again"
            ) from error
        self._own[checkpoint.version] = checkpoint

    async def _append_in_place(self, checkpoint: Checkpoint) -> None:
        """Behind what is no version of the run, where that stands under its name. Raises `ChainConflict` behind a version."""
        try:
            await self._append_after(0, checkpoint)
        except ChainConflict:
            in_the_way = await self._in_the_way(checkpoint.version)
            if in_the_way == 0:
                raise
            await self._append_after(in_the_way, checkpoint)

    async def _append_after(self, last_seq: int, checkpoint: Checkpoint) -> None:
        subject = self._subjects.checkpoint(checkpoint.version)
        expect = Expect(subject, last_seq)
        await until_available(partial(self._bus.append, self._subjects.checkpoints, subject, checkpoint, expect=expect))

    async def _in_the_way(self, version: PolicyVersion) -> int:
        """The sequence of what stands under a version's name and is no version of the run; 0: nothing does."""
        known = (await self._lineage()).known.get(version)
        if known is not None and known not in self._hollow and not why_hollow(known):
            return 0
        names = self._subjects
        try:
            record = await until_available(partial(self._bus.last, names.checkpoints, names.checkpoint(version)))
        except MessageCorrupt as error:
            return error.seq
        return record.seq if record is not None else 0

    async def _lineage(self) -> Lineage:
        """As the leader knows it: what is not in it is announced again, and its weights are removed."""
        return await until_available(partial(confirmed, self._known, self._bus, self._subjects))

    async def _with_differences(self, checkpoint: Checkpoint) -> Checkpoint:
        if self._publisher is None or checkpoint.differences:
            return checkpoint
        earlier = await self._earlier(checkpoint.version)
        folder = folder_of(checkpoint.uri)
        return await self._publisher.with_differences(folder, checkpoint, earlier) if earlier else checkpoint

    async def _send(self, checkpoint: Checkpoint) -> None:
        if self._publisher is not None:
            earlier = await self._earlier(checkpoint.version)
            await self._publisher.send(folder_of(checkpoint.uri), checkpoint, earlier)

    async def _earlier(self, version: PolicyVersion) -> list[Checkpoint]:
        """The versions before one, oldest first."""
        return [each for each in (await self._lineage()).known.values() if each.version < version]

    async def _before(self, version: PolicyVersion) -> list[Checkpoint]:
        """The other versions that are kept on the bus."""
        assert self._publisher is not None
        return await self._announced(range(max(0, version + 1 - self._publisher.num_kept), version))

    async def _bases(self, checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
        """The whole models that these versions are adapters of."""
        return await self._announced({each.base for each in checkpoints if each.base is not None})

    async def _announced(self, versions: Iterable[int]) -> list[Checkpoint]:
        known = (await self._lineage()).known
        return [known[PolicyVersion(version)] for version in versions if version in known]
