"""Finds the weights that an engine starts from: the base model where it is here, else the newest announced ones; for adapters
the announced version 0, which they are trained on."""

import random
from pathlib import Path

import anyio
import structlog

from agents.following import pause_s
from agents.weight_sources import WeightSources
from bus.lineage import Lineage, catch_up
from bus.ports import Bus
from bus.subjects import Subjects
from schemas.errors import CheckpointCorrupt, WeightsUnavailable
from schemas.ids import PolicyVersion

_LOOK_S = 0.5
_SAY_S = 30.0
_log = structlog.get_logger()


async def starting_weights(
    bus: Bus, subjects: Subjects, sources: WeightSources, *, adapters: bool = False
) -> tuple[Path, PolicyVersion]:
    """A model folder and its version. Where the base model is not on this machine, waits for the trainer.

    Args:
        adapters: they will be loaded onto it, so it is the announced version 0, which is waited for.

    Raises:
        PolicyError: this machine's disk is full.
        BusUnavailable: no server answers.
    """
    if sources.base is not None and not adapters:
        return sources.base, PolicyVersion(0)
    lineage = Lineage()
    refused, num_refusals, due_at = PolicyVersion(-1), 0, 0.0
    said_at = -_SAY_S
    while True:
        newest = (await catch_up(lineage, bus, subjects)).newest
        if newest is not None and (adapters or newest.base is not None):
            # Adapters are loaded into an engine that has the model.
            newest = lineage.known.get(newest.base or PolicyVersion(0))
        if newest is not None and (newest.version != refused or anyio.current_time() >= due_at):
            try:
                return await sources.folder(newest), newest.version
            except (CheckpointCorrupt, WeightsUnavailable) as error:
                if newest.version != refused:
                    refused, num_refusals = newest.version, 0
                    _log.error("checkpoint_refused", version=newest.version, reason=str(error))
                num_refusals += 1
                due_at = anyio.current_time() + pause_s(num_refusals, random.random())  # noqa: S311 - nothing secret is drawn
        if anyio.current_time() - said_at >= _SAY_S:
            said_at = anyio.current_time()
            _log.info("weights_awaited", reason="the trainer has announced no version to start from")
        await anyio.sleep(_LOOK_S)
