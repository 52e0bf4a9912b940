"""Real vLLM on CPU, whole and in two parts: what it sampled is what transformers computes, also after weights change in place.

The models' embeddings are tied, the harder case: vLLM by itself would go on with the old output weights.
"""

import io
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from agents.tokens import PromptTokenizer
from tests.deadlines import HANGS_S
from tests.integration.vllm_scenario import NUM_IN_FLIGHT, POLICY
from tests.support.agents import tiny_models

pytestmark = [pytest.mark.integration]

ROOT = Path(__file__).parents[2]


class Told:
    def __init__(self, folders: dict[int, Path], num_parts: int) -> None:
        self.folders, self.num_parts = folders, num_parts
        vllm_args = {"tensor_parallel_size": num_parts} if num_parts > 1 else {}
        child = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.integration.vllm_scenario",
                str(folders[3]),
                str(folders[4]),
                json.dumps(vllm_args),
            ],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=HANGS_S,
            check=False,
        )
        self.returncode, self.errors = child.returncode, child.stderr
        assert child.returncode == 0, child.stdout[-3000:] + child.stderr[-6000:]
        told = json.loads(child.stdout.strip().splitlines()[-1])
        self.generations: dict[str, dict[str, Any]] = told["generations"]
        self.facts: dict[str, Any] = told["facts"]

    @property
    def in_flight(self) -> list[dict[str, Any]]:
        return [self.generations[f"in flight {index}"] for index in range(NUM_IN_FLIGHT)]


@pytest.fixture(scope="module", params=[1, 2], ids=["whole", "two_parts"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("models")
    models = {version: tiny_models.build(folder / str(version), seed=version, tied=True) for version in (3, 4)}
    return Told(models, request.param)


@cache
def _model(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

    model = Qwen3VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), AutoProcessor.from_pretrained(folder)


def _recomputed(folder: Path, generation: dict[str, Any]) -> torch.Tensor:
    """Log-probabilities of the completion tokens by transformers: suppression, temperature, top_k; shape (tokens,)."""
    model, processor = _model(folder)
    screenshots = [Image.open(io.BytesIO(tiny_models.screenshot(seed).data)) for seed in generation["screenshots"]]
    seen = processor.image_processor(images=screenshots, return_tensors="pt")
    tokens = torch.tensor([[*generation["prompt_tokens"], *generation["completion_tokens"]]])
    placeholder = model.config.image_token_id
    with torch.no_grad():
        logits = model(
            input_ids=tokens, **seen, mm_token_type_ids=(tokens == placeholder).int(), attention_mask=torch.ones_like(tokens)
        ).logits[0]
    first = len(generation["prompt_tokens"])
    logits = logits[first - 1 : -1]
    logits[:, list(PromptTokenizer(folder).suppressed)] -= 100.0
    if generation["temperature"] > 0:
        logits = logits / generation["temperature"]
        smallest = logits.topk(POLICY.top_k).values[:, -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    chosen: torch.Tensor = logits.log_softmax(-1).gather(1, tokens[0, first:, None])[:, 0]
    return chosen


def _mismatch(told: Told, generation: dict[str, Any]) -> float:
    """Mean absolute difference in nats, each token under the version that is said to have sampled it."""
    recomputed = {version: _recomputed(told.folders[version], generation) for version in told.folders}
    expected = torch.cat([recomputed[span["version"]][span["start"] : span["end"]] for span in generation["versions"]])
    return float((expected - torch.tensor(generation["logprobs"])).abs().mean())


@pytest.mark.parametrize("name", ["before", "greedy 1", "five screenshots", "after", "greedy after"])
def test_logprobs_are_those_of_the_model(told: Told, name: str) -> None:
    generation = told.generations[name]
    assert len(generation["logprobs"]) == len(generation["completion_tokens"]) > 0
    assert _mismatch(told, generation) < 0.02


def test_no_request_fails_while_weights_change(told: Told) -> None:
    assert all(generation["finish_reason"] in ("stop", "length") for generation in told.in_flight)


def test_a_prompt_that_is_prepared_while_weights_are_read_is_not_looked_for_beside_them(told: Told) -> None:
    assert told.facts["refused_meanwhile"] is None


def test_every_token_belongs_to_the_version_that_sampled_it(told: Told) -> None:
    spans = [[(s["start"], s["end"], s["version"]) for s in generation["versions"]] for generation in told.in_flight]
    assert any(len(each) == 2 for each in spans), "the weights changed in the middle of some answers"
    for generation, each in zip(told.in_flight, spans, strict=True):
        assert each[0][0] == 0
        assert each[-1][1] == len(generation["completion_tokens"])
        assert [version for _, _, version in each] == sorted({version for _, _, version in each})
        assert _mismatch(told, generation) < 0.02


def test_the_same_screenshot_is_seen_anew_by_new_weights(told: Told) -> None:
    assert {span["version"] for span in told.generations["before"]["versions"]} == {3}
    assert {span["version"] for span in told.generations["after"]["versions"]} == {4}
    assert told.generations["greedy 1"]["completion_tokens"] != told.generations["greedy after"]["completion_tokens"]
    assert told.facts["version"] == 4


def test_greedy_is_repeatable(told: Told) -> None:
    assert told.generations["greedy 1"] == told.generations["greedy 2"]


def test_control_tokens_are_never_sampled(told: Told) -> None:
    suppressed = set(PromptTokenizer(told.folders[3]).suppressed)
    assert not any(suppressed & set(generation["completion_tokens"]) for generation in told.generations.values())


def test_a_screenshot_that_is_none_is_refused_for_good(told: Told) -> None:
    assert "vLLM refuses a prompt of" in told.facts["refused_picture"]


def test_a_prompt_that_leaves_no_room_for_an_answer_is_refused(told: Told) -> None:
    """1024 tokens in all, 24 of them for the answer."""
    assert "tokens without any earlier round, and 1000 fit beside an answer" in told.facts["refusal"]


def test_a_prompt_is_shortened_until_it_fits(told: Told) -> None:
    assert told.facts["num_dropped"] == 2
    assert told.facts["shortened_prompt"] == told.generations["before"]["prompt_tokens"]


def test_the_engine_says_how_full_it_is(told: Told) -> None:
    gauges = told.facts["gauges"]
    assert (gauges["engine_running"], gauges["engine_waiting"]) == (1, 0)
    assert 0 < gauges["kv_cache_share"] < 1


def test_an_engine_that_computes_is_seen_to(told: Told) -> None:
    """Some steps only take a request out, or take in as many tokens as they let go of; never many in a row."""
    silences = "".join("x" if seen else "." for seen in told.facts["seen_computing"]).split("x")
    assert len(silences) > 100
    assert max(map(len, silences)) < 5, silences


def test_nothing_listens_beyond_this_machine(told: Told) -> None:
    assert set(told.facts["listening"]) <= {"127.0.0.1"}


def test_a_process_alone_or_with_one_for_each_part_that_all_end(told: Told) -> None:
    """Python's own resource tracker is there beside the parts. Whoever outlived the child would have kept its output open."""
    assert told.facts["children"] == (told.num_parts + 1 if told.num_parts > 1 else 0)
    assert told.facts["thread_ended"]
    assert told.returncode == 0
    assert "Traceback" not in told.errors
