"""What the order of a question's parts is worth on a real server: vLLM with a tiny model, pictures of many tokens."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from benchmarks.judge_questions import QuestionFirst, Unrecorded, hoped_for
from benchmarks.judged_episodes import Kind, ended
from benchmarks.report import Report
from judges.endpoint.openai_endpoint import OpenAIEndpoint
from judges.endpoint.opening import open_endpoints
from judges.endpoint.port import Endpoint
from judges.rubric.judge import RubricJudge
from judges.rubric.prompts import committed_prompts
from ops.demo.tiny_model import TinyShape
from schemas.config import JudgeConfig, OpenAIConfig, QuestionConfig
from tests import tiny_models
from tests.scripted_judging import RUBRIC
from tests.vllm_server import KEY, MAX_PICTURES, MODEL, vllm_server

_NUM_TRAJECTORIES: Final = 4
_MAX_TOKENS: Final = 8
"""Of an answer, which nobody reads."""
_SHAPE: Final = TinyShape(max_vocabulary=2048, max_picture_pixels=300_000)
_WIDTH, _HEIGHT = 640, 448
_BLOCK_TOKENS: Final = 32
_LIMIT_S: Final = 120.0
QUESTION_FIRST, STAGED = "question first", "staged"
_STAGES: Final = {
    "blocking": ("blocking",),
    "key points": ("keypoint",),
    "evaluation": ("criterion_b", "criterion_a", "reference"),
}


@dataclass(frozen=True)
class Row:
    """Means of a trajectory."""

    way: str
    stage: str
    calls: float
    prompt_tokens: float
    cached_tokens: float
    cached_share: float
    seconds: float
    """Of its calls together."""


async def measure() -> list[Row]:
    prompts = committed_prompts(RUBRIC)
    with tempfile.TemporaryDirectory() as name:
        server = vllm_server(
            Path(name),
            list(prompts.texts.values()),
            shape=_SHAPE,
            options=("--enable-prefix-caching", "--enable-prompt-tokens-details", "--block-size", str(_BLOCK_TOKENS)),
        )
        started = await anyio.to_thread.run_sync(server.__enter__)
        try:
            model = QuestionConfig(model=MODEL)
            config = OpenAIConfig(
                base_url=started.base_url,
                openai_api_key_env_var="BENCHMARK_KEY",
                model=MODEL,
                keypoint_detection=model,
                blocking_detection=model,
                structured_output="text",
            )
            async with open_endpoints(config, {"BENCHMARK_KEY": KEY}) as endpoints:
                return await _measured(endpoints["evaluation"])
        finally:
            await anyio.to_thread.run_sync(server.__exit__, None, None, None)


def report(rows: Sequence[Row]) -> Report:
    return Report(
        name="judging_prefix",
        title="The order of a question's parts on a vLLM server",
        rows=rows,
        notes=(
            f"means of {_NUM_TRAJECTORIES} trajectories of {MAX_PICTURES} pictures of {_WIDTH} x {_HEIGHT}, every question of "
            "a success; the model is tiny and untrained, so the tokens are what counts, and seconds show the way only",
            f"vLLM on CPU, prefix caching with blocks of {_BLOCK_TOKENS} tokens",
        ),
    )


async def _measured(endpoint: OpenAIEndpoint) -> list[Row]:
    ways: dict[str, Callable[[OpenAIEndpoint], Endpoint]] = {QUESTION_FIRST: QuestionFirst, STAGED: lambda one: one}
    asked: dict[str, Unrecorded] = {way: _interviewer(turn(endpoint)) for way, turn in ways.items()}
    seconds = dict.fromkeys(ways, 0.0)
    with anyio.fail_after(_LIMIT_S):
        # The first one warms the server up. No picture is shown twice: the server keeps what it has decoded.
        await _judge(_interviewer(endpoint), 0)
        for number in range(_NUM_TRAJECTORIES):
            for place, way in enumerate(ways, 1):
                began = time.monotonic()
                await _judge(asked[way], 2 * number + place)
                seconds[way] += time.monotonic() - began
    return [row for way in ways for row in _rows(way, asked[way], seconds[way])]


def _interviewer(endpoint: Endpoint) -> Unrecorded:
    groups = ("keypoint_detection", "blocking_detection", "evaluation")
    return Unrecorded(dict.fromkeys(groups, endpoint), max_completion_tokens=_MAX_TOKENS, finding=hoped_for)


async def _judge(interviewer: Unrecorded, number: int) -> None:
    episode = ended(Kind.SUCCESS, number, MAX_PICTURES, lambda seed: tiny_models.picture(seed, _WIDTH, _HEIGHT))
    judge = RubricJudge(interviewer, committed_prompts(RUBRIC), JudgeConfig(judge=RUBRIC))
    await judge.judge(await episode.before_a_judge())


def _rows(way: str, interviewer: Unrecorded, seconds: float) -> list[Row]:
    rows = []
    for stage, stages in _STAGES.items():
        answers = [answer for inquiry, answer in interviewer.answers if inquiry.stage in stages]
        prompt_tokens, cached_tokens = sum(one.prompt_tokens for one in answers), sum(one.cached_tokens for one in answers)
        rows.append(_row(way, stage, len(answers), prompt_tokens, cached_tokens, sum(one.seconds for one in answers)))
    answers = [answer for _, answer in interviewer.answers]
    prompt_tokens, cached_tokens = sum(one.prompt_tokens for one in answers), sum(one.cached_tokens for one in answers)
    return [*rows, _row(way, "all, in wall time", len(answers), prompt_tokens, cached_tokens, seconds)]


def _row(way: str, stage: str, num_calls: int, prompt_tokens: int, cached_tokens: int, seconds: float) -> Row:
    return Row(
        way=way,
        stage=stage,
        calls=num_calls / _NUM_TRAJECTORIES,
        prompt_tokens=prompt_tokens / _NUM_TRAJECTORIES,
        cached_tokens=cached_tokens / _NUM_TRAJECTORIES,
        cached_share=cached_tokens / prompt_tokens,
        seconds=seconds / _NUM_TRAJECTORIES,
    )
