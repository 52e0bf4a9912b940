"""A training job of which a rank does not come, or fails alone: it ends, and says why."""

import os
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest
import torch
import torch.distributed as dist

from schemas.errors import TrainerError
from tests.deadlines import HANGS_S
from tests.support.agents import tiny_models
from tests.support.training.lora_runs import samples_of
from tests.support.training.rank_processes import ended_ranks
from tests.support.training.trainer_world import settings
from trainer.engine import deepspeed_engine, models, ranks
from trainer.engine.training_engine import dismiss_ranks, follow, open_engine
from trainer.imitation import cloning_items

pytestmark = pytest.mark.integration


def test_ranks_that_do_not_come_are_named_to_those_that_did(monkeypatch: pytest.MonkeyPatch) -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    monkeypatch.setattr(ranks, "_MEET_FOR", timedelta(milliseconds=1))
    with pytest.raises(TrainerError, match=r"rank 2 of 3 waited .* did not come: 0, 1\. "):
        ranks._meet(store, 2, 3)
    with pytest.raises(TrainerError, match=r"rank 0 of 3 waited .* did not come: 1\. "):
        ranks._meet(store, 0, 3)
    monkeypatch.setattr(ranks, "_MEET_FOR", timedelta(seconds=HANGS_S))
    ranks._meet(store, 1, 3)


_PROGRAM = """
import sys
from pathlib import Path
from tests.integration import test_rank_failures
test_rank_failures.out_of_memory(Path(sys.argv[1]), Path(sys.argv[2]).name)
"""


def out_of_memory(base: Path, where: str) -> None:
    """Rank 0 alone has no room, while it opens the engine or in the middle of a step: what its role does then."""
    if os.environ["RANK"] != "0":
        follow(settings=settings())
        return

    def full(*_: object, **__: object) -> NoReturn:
        raise torch.OutOfMemoryError("no room on rank 0")

    samples = samples_of(base, 3)
    if where == "opening":
        models.Models._open_policy = full  # type: ignore[method-assign]
    try:
        with open_engine(base, settings=settings()) as engine:
            engine.train(cloning_items(samples))
            deepspeed_engine.DeepSpeedEngine._attempt = full  # type: ignore[method-assign]
            engine.train(cloning_items(samples))
    finally:
        dismiss_ranks()


@pytest.mark.parametrize("where", ["opening", "step"])
def test_an_error_of_rank_0_alone_comes_out_and_ends_the_job(tmp_path: Path, where: str) -> None:
    base = tiny_models.build(tmp_path / "model", seed=1)
    first, second = ended_ranks(_PROGRAM, base, Path(where))
    assert first.code == 1
    assert first.output.rstrip().endswith("OutOfMemoryError: no room on rank 0"), first.output
    assert second.code != 0, "nobody dismissed it"
