"""Runs the trainer around an engine that only counts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from ops.roles.trainer import train_with
from ops.run.joining import RoleRun
from ops.simulation.material import ensure_model
from ops.simulation.training import Counters, SimulatedBuilder, SimulatedTrainEngine, read_counters


async def train(run: RoleRun) -> None:
    """Runs until all versions are published."""

    @contextmanager
    def open_engine(folder: Path, resume: Path | None, num_updates: int) -> Iterator[SimulatedTrainEngine]:
        del folder
        counters = replace(read_counters(resume), num_updates=num_updates) if resume else Counters(num_updates)
        yield SimulatedTrainEngine(run.config.simulation_config, counters)

    base = ensure_model(run.folder.model)
    await train_with(run, open_engine, lambda _: SimulatedBuilder(), base=base)
