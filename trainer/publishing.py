"""A version becomes the run's newest: written, announced with its metrics, tracked; those that are not needed any more go."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from bus.presence import Status
from schemas.ids import PolicyVersion, RunName
from schemas.messages import Checkpoint
from schemas.ranges import is_real
from schemas.trainer_config import TrainerConfig
from trainer.batch_metrics import batch_metrics, token_metrics
from trainer.episodes.intake import Judged
from trainer.model.adapter_folder import holds_adapters
from trainer.ports import EngineFiles
from trainer.torch_thread import InThread
from trainer.tracking.log import Tracking
from trainer.training_metrics import PhaseClock
from trainer.versions.announcements import Announcements
from trainer.versions.checkpoints import TrainerState, prune, write_checkpoint
from trainer.versions.retention import Retention

_log = structlog.get_logger()


class Publishing:
    """Of one run."""

    def __init__(
        self,
        *,
        run: RunName,
        config: TrainerConfig,
        base: Path,
        root: Path,
        announcements: Announcements,
        tracking: Tracking,
        status: Status,
        in_thread: InThread,
    ) -> None:
        """`base`: the model that is version 0; `root`: the folder of the versions' folders."""
        self._run = run
        self._config = config
        self._base = base
        self._root = root
        self._announcements = announcements
        self._tracking = tracking
        self._status = status
        self._in_thread = in_thread

    async def publish(
        self,
        state: TrainerState,
        files: EngineFiles,
        *,
        parent: int,
        batch: Sequence[Judged],
        measured: Mapping[str, float],
        clock: PhaseClock,
    ) -> Checkpoint:
        """The version of `state`, once it is announced.

        Args:
            parent: the version whose weights it was made from.
            batch: what the iteration consumed, not empty.
            measured: what the iteration came to; those of the batch and the phases' seconds are added.

        Raises:
            TrainerError: the disk is full, or another trainer announced this version.
        """
        base = None if self._config.lora.active else self._base
        folder, hashes = await self._in_thread(lambda: write_checkpoint(self._root, base=base, engine=files, state=state))
        clock.end("save")
        judgements = [item.judgement for item in batch]
        tokens = token_metrics([item.steps.num_tokens for item in batch])
        metrics = batch_metrics(judgements) | tokens | dict(measured) | clock.phases
        checkpoint = Checkpoint(
            run=self._run,
            version=PolicyVersion(state.version),
            uri=folder.as_uri(),
            files=hashes,
            parent=PolicyVersion(parent),
            trainer_step=state.num_updates,
            judged_seq=batch[-1].seq,
            num_trajectories=state.num_trajectories,
            metrics=_finite(metrics, state.version),
            base=PolicyVersion(0) if holds_adapters(folder) else None,
        )
        checkpoint = await self._announcements.announce(checkpoint)
        self._status.metrics.update(version=state.version, success=metrics["success"], trajectories=state.num_trajectories)
        await self._tracking.trained(state.version, metrics, judgements)
        _log.info("version_published", version=state.version, **{key: round(value, 4) for key, value in metrics.items()})
        retention = Retention.of(self._config, state.guard.needed | {state.whole})
        await self._in_thread(lambda: prune(self._root, newest=state.version, retention=retention))
        return checkpoint


def _finite(metrics: Mapping[str, float], version: int) -> dict[str, float]:
    """Those that can be announced; the others are told."""
    lost = sorted(name for name, value in metrics.items() if not is_real(value))
    if lost:
        _log.error("metrics_not_finite", version=version, names=lost)
    return {name: value for name, value in metrics.items() if name not in lost}
