"""Runs the trainer around an engine that only counts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ops.roles.trainer import train_with
from ops.run.joining import RoleRun
from ops.simulation.material import ensure_model
from ops.simulation.training import Counters, SimulatedBuilder, SimulatedTrainEngine, read_counters


async def train(run: RoleRun) -> None:
    """Runs until all versions are published."""

    @contextmanager
    def open_engine(folder: Path, resume: bool) -> Iterator[SimulatedTrainEngine]:
        yield SimulatedTrainEngine(run.config.simulation_config, read_counters(folder) if resume else Counters())

    base = ensure_model(run.folder.model)
    await train_with(run, open_engine, lambda _: SimulatedBuilder(), base=base)
