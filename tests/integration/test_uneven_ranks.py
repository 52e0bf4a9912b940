"""Ranks whose micro-batches hold different things: screenshots or none, sequences of other lengths, more chunks of logits."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.test_architectures import samples_of
from tests.support.agents import tiny_architectures
from tests.support.training.rank_processes import run_ranks
from tests.support.training.trainer_world import settings, small
from trainer.engine.settings import EngineSettings
from trainer.engine.training_engine import dismiss_ranks, follow, open_engine
from trainer.imitation import cloning_items
from trainer.model import logprobs

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:.*torch.distributed.*is deprecated:FutureWarning"),
]
CASES = ("qwen3_vl-1", "qwen3_vl-2", "qwen3_vl-3", "qwen3_5-3", "internvl-1")
"""Architectures and ZeRO stages."""
_PROGRAM = """
import sys
from pathlib import Path
from tests.integration import test_uneven_ranks
test_uneven_ranks.on_ranks(Path(sys.argv[1]))
"""


def chosen(case: str) -> EngineSettings:
    """A micro-batch is one sample: of two ranks, one comes to the sample without a screenshot, the other to one with."""
    logprobs._CHUNK = 3
    plain = settings(int(case[-1]), small(per_device_train_batch_size=1))
    return replace(
        plain, deepspeed=replace(plain.deepspeed, settings=plain.deepspeed.settings | {"activation_checkpointing": {}})
    )


def trained(models: Path, case: str) -> list[float]:
    """Losses and norms of steps, the last of samples without a screenshot alone, and what the model says of each then."""
    base = models / case.partition("-")[0]
    samples = samples_of(base)
    with open_engine(base, settings=chosen(case)) as engine:
        unseen = [sample for sample in samples if not sample.screenshots]
        done = [engine.train(cloning_items(of)) for of in (samples, samples, unseen)]
        found = [figure for step in done for figure in (step.loss, step.grad_norm)]
        return found + [float(said.sum()) for said in engine.completion_logprobs(samples)]


def on_ranks(models: Path) -> None:
    """What each of two processes runs."""
    for case in CASES:
        if os.environ["RANK"] != "0":
            follow(settings=chosen(case))
            continue
        print("TRAINED", case, json.dumps(trained(models, case)), flush=True)
        dismiss_ranks()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name in {case.partition("-")[0] for case in CASES}:
        tiny_architectures.build(folder / name, name, seed=1)
    return folder


@pytest.fixture(scope="module")
def together(models: Path) -> Mapping[str, list[float]]:
    """By case; one pair of processes for all."""
    said = [line.split(maxsplit=2) for line in run_ranks(_PROGRAM, models).splitlines() if line.startswith("TRAINED ")]
    return {case: json.loads(rest) for _, case, rest in said}


@pytest.mark.parametrize("case", CASES)
def test_two_ranks_compute_what_one_does(
    models: Path, together: Mapping[str, list[float]], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logprobs, "_CHUNK", logprobs._CHUNK)
    assert together[case] == pytest.approx(trained(models, case), rel=1e-3)


@pytest.mark.parametrize("stage", [2, 3])
def test_every_stage_computes_the_same(models: Path, stage: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a part of the model is not reached in a step, and its gradients of the step before are still there."""
    monkeypatch.setattr(logprobs, "_CHUNK", logprobs._CHUNK)
    assert trained(models, f"qwen3_vl-{stage}") == pytest.approx(trained(models, "qwen3_vl-1"), rel=1e-3)
