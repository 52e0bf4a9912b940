"""Adapters trained by the real engine and loaded by a real vLLM while it answers: both say the same of every token."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from schemas.ids import PolicyVersion
from tests.deadlines import HANGS_S
from tests.integration.vllm_adapter_scenario import NUM_EACH
from tests.integration.vllm_scenario import POLICY
from tests.support.agents import tiny_models
from tests.support.training.lora_runs import adapted, samples_of, step_request
from tests.support.training.trainer_world import ref
from trainer.engine.training_engine import open_engine
from trainer.episodes.sample_builder import SampleBuilder
from trainer.imitation import cloning_items
from trainer.samples import Sample
from trainer.truncation import Truncation
from trainer.versions.checkpoints import TrainerState, hash_files, write_checkpoint

pytestmark = [pytest.mark.integration]

ROOT = Path(__file__).parents[2]
VERSIONS = (1, 2, 3)


@dataclass
class Told:
    folders: dict[int, Path]
    generations: dict[str, dict[str, Any]]
    facts: dict[str, Any]
    base_is_unchanged: bool

    def version(self, name: str) -> int:
        (span,) = self.generations[name]["versions"]
        assert (span["start"], span["end"]) == (0, len(self.generations[name]["completion_tokens"]))
        return int(span["version"])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    torch.set_num_threads(1)
    place = tmp_path_factory.mktemp("models")
    base = tiny_models.build(place / "base", seed=3, tied=True)
    before = hash_files(base)
    folders = {0: base} | trained(base, place)
    child = subprocess.run(
        [sys.executable, "-m", "tests.integration.vllm_adapter_scenario", *map(str, folders.values())],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert child.returncode == 0, child.stdout[-3000:] + child.stderr[-6000:]
    told = json.loads(child.stdout.strip().splitlines()[-1])
    return Told(folders, told["generations"], told["facts"], hash_files(base) == before)


def trained(base: Path, place: Path) -> dict[int, Path]:
    """Five steps of the real engine before every version."""
    samples, folders = samples_of(base, 4), {}
    settings = adapted()
    with open_engine(base, settings=settings) as engine:
        for version in VERSIONS:
            for _ in range(5):
                engine.train(cloning_items(samples))
            state = TrainerState(version=version, num_trajectories=0, num_updates=engine.num_updates)
            folders[version], _ = write_checkpoint(place / "out", base=None, engine=engine.files(), state=state)
    return folders


def mismatch(told: Told, names: list[str], version: int) -> list[float]:
    """Largest differences in nats between what vLLM said of an answer's tokens and what the trainer says of them."""
    generations = [told.generations[name] for name in names]
    folder = told.folders[version]
    with open_engine(folder, settings=adapted(), resume=folder if version > 0 else None) as engine:
        found = engine.completion_logprobs(
            [sample(told, generation) for generation in generations if generation["temperature"] > 0],
            Truncation(top_k=POLICY.top_k),
        )
    said = [np.array(generation["logprobs"]) for generation in generations if generation["temperature"] > 0]
    return [float(np.abs(one - other).max()) for one, other in zip(found, said, strict=True)]


def sample(told: Told, generation: dict[str, Any]) -> Sample:
    builder = SampleBuilder(told.folders[0], cutoff_len=2000)
    step = step_request(
        tuple(generation["prompt_tokens"]),
        tuple(generation["completion_tokens"]),
        temperature=generation["temperature"],
    )
    return builder.build(
        ref(0), step, builder.patches([tiny_models.screenshot(seed).data for seed in generation["screenshots"]])
    )


@pytest.mark.parametrize("version", [0, *VERSIONS])
def test_sampler_and_trainer_agree_on_every_version(told: Told, version: int) -> None:
    names = [f"{version} in flight {index}" for index in range(NUM_EACH)]
    assert all(told.generations[name]["finish_reason"] in ("stop", "length") for name in names)
    assert {told.version(name) for name in names} == {version}, "an answer keeps the adapter that it began with"
    assert max(mismatch(told, names, version)) < 1e-4
    other = (version + 1) % (len(VERSIONS) + 1)
    assert max(mismatch(told, names, PolicyVersion(other))) > 1e-3, "the versions can be told apart"


def test_new_requests_get_the_newest_adapter(told: Told) -> None:
    assert told.version("base") == 0
    assert told.version("newest") == told.facts["version"] == 3
    assert told.generations["base"]["logprobs"] != told.generations["newest"]["logprobs"]


def test_two_adapters_are_held_at_most(told: Told) -> None:
    assert [told.facts[f"loaded {version}"] for version in VERSIONS] == [[1], [1, 2], [2, 3]]


def test_a_whole_model_is_refused(told: Told) -> None:
    assert "holds a whole model" in told.facts["refusal"]
    assert told.base_is_unchanged
