"""Where a test's policy gets announced weights from, when they are on its own disk."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from agents.weight_sources import WeightSources
from bus.ports import Bus
from bus.subjects import Subjects
from schemas.bus_config import BusConfig


def local_weights(bus: Bus, subjects: Subjects) -> WeightSources:
    """The announced folder or nothing; what is loaded is held in a folder of this process's own."""
    return WeightSources(bus, subjects, BusConfig(weights="path"), cache=_cache(), base=None)


@cache
def _cache() -> Path:
    made = Path(tempfile.mkdtemp(prefix="millrace-held-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made
