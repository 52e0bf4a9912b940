"""Where a test's policy gets announced weights from, when they are on its own disk."""

from pathlib import Path

from agents.weight_sources import WeightSources
from bus.ports import Bus
from bus.subjects import Subjects
from schemas.bus_config import BusConfig


def local_weights(bus: Bus, subjects: Subjects) -> WeightSources:
    """The announced folder or nothing."""
    return WeightSources(bus, subjects, BusConfig(weights="path"), cache=Path("no-cache"), base=None)
