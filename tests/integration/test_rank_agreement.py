"""What every rank finds out for itself, and all have to do alike."""

import os
import sys
from pathlib import Path

import pytest
from torch import nn

from tests.support.agents import tiny_models
from tests.support.training.lora_runs import samples_of
from tests.support.training.rank_processes import ended_ranks
from tests.support.training.trainer_world import settings
from trainer.engine.training_engine import dismiss_ranks, follow, open_engine
from trainer.fast_layers import compiled_layers
from trainer.imitation import cloning_items
from trainer.model import loading

pytestmark = pytest.mark.integration

_PROGRAM = """
import sys
from pathlib import Path
from tests.integration import test_rank_agreement
test_rank_agreement.train(Path(sys.argv[1]), Path(sys.argv[2]).name)
"""


def train(base: Path, able: str) -> None:
    """One step on a rank whose number is in `able` where its compiler works; says how many models' layers were compiled."""
    compiled = list[int]()

    def compile_layers(model: nn.Module) -> None:
        compiled.append(compiled_layers.compile_layers(model, backend="eager"))

    compiled_layers.compiles = lambda: os.environ["RANK"] in able
    vars(loading)["compile_layers"] = compile_layers
    if os.environ["RANK"] == "0":
        with open_engine(base, settings=settings()) as engine:
            engine.train(cloning_items(samples_of(base, 3)))
        dismiss_ranks()
    else:
        follow(settings=settings())
    sys.stdout.write(f"COMPILED {len(compiled)}\n")


@pytest.mark.parametrize(("able", "num_compiled"), [("0", 0), ("1", 0), ("01", 1)])
def test_layers_are_compiled_on_all_ranks_or_on_none(tmp_path: Path, able: str, num_compiled: int) -> None:
    base = tiny_models.build(tmp_path / "model", seed=1)
    for ended in ended_ranks(_PROGRAM, base, Path(able)):
        assert ended.code == 0, ended.output[-3000:]
        assert f"COMPILED {num_compiled}" in ended.output.splitlines(), ended.output[-3000:]
