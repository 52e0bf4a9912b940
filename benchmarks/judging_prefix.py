"""What the order of a question's parts is worth on a real server: vLLM with a tiny model, screenshots of many tokens."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from benchmarks.judge_questions import QuestionFirst
from benchmarks.judged_episodes import Kind, ended
from benchmarks.report import Report
from benchmarks.unrecorded_session import Unrecorded, hoped_for
from judges.endpoint.openai_endpoint import OpenAIEndpoint
from judges.endpoint.opening import open_endpoints
from judges.endpoint.port import Answer, Endpoint
from judges.rubric.judge import RubricJudge
from judges.rubric.prompts import committed_prompts
from ops.quickstart.tiny_model import TinyShape
from schemas.judge_config import JudgeConfig, OpenAIConfig, QuestionConfig
from tests.support.agents import tiny_models
from tests.support.agents.vllm_server import KEY, MAX_SCREENSHOTS, MODEL, vllm_server
from tests.support.judging.scripted_judging import RUBRIC

_NUM_TRAJECTORIES: Final = 4
_MAX_TOKENS: Final = 8
"""Of an answer, which nobody reads."""
_SHAPE: Final = TinyShape(max_screenshot_pixels=300_000)
_WIDTH, _HEIGHT = 640, 448
_BLOCK_TOKENS: Final = 32
_KEY_VARIABLE: Final = "BENCHMARK_KEY"
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
    """Of the calls of a stage together, some of them at once; in the end, of the whole."""


async def measure() -> list[Row]:
    model = QuestionConfig(model=MODEL)
    options = ("--enable-prefix-caching", "--enable-prompt-tokens-details", "--block-size", str(_BLOCK_TOKENS))
    # Blocks while it starts, and nothing else is to be done meanwhile.
    with (
        tempfile.TemporaryDirectory() as name,
        vllm_server(Path(name), list(committed_prompts(RUBRIC).texts.values()), shape=_SHAPE, options=options) as server,
    ):
        config = OpenAIConfig(
            base_url=server.base_url,
            openai_api_key_env_var=_KEY_VARIABLE,
            model=MODEL,
            keypoint_detection=model,
            blocking_detection=model,
            structured_output="text",
        )
        async with open_endpoints(config, {_KEY_VARIABLE: KEY}) as endpoints:
            return await _measured(endpoints["evaluation"])


def report(rows: Sequence[Row]) -> Report:
    return Report(
        name="judging_prefix",
        title="The order of a question's parts on a vLLM server",
        rows=rows,
        notes=(
            f"means of {_NUM_TRAJECTORIES} trajectories of {MAX_SCREENSHOTS} screenshots of {_WIDTH} x {_HEIGHT}, every "
            "question of a success; the model is tiny and untrained: the tokens are what counts, seconds show the way only",
            f"vLLM on CPU, prefix caching with blocks of {_BLOCK_TOKENS} tokens",
        ),
    )


async def _measured(endpoint: OpenAIEndpoint) -> list[Row]:
    ways: dict[str, Callable[[OpenAIEndpoint], Endpoint]] = {QUESTION_FIRST: QuestionFirst, STAGED: lambda one: one}
    asked: dict[str, Unrecorded] = {way: _sessions(turn(endpoint)) for way, turn in ways.items()}
    seconds = dict.fromkeys(ways, 0.0)
    with anyio.fail_after(_LIMIT_S):
        # The first one warms the server up. No screenshot is shown twice: the server keeps what it has decoded.
        await _judge(_sessions(endpoint), 0)
        for number in range(_NUM_TRAJECTORIES):
            for place, way in enumerate(ways, 1):
                began = time.monotonic()
                await _judge(asked[way], 2 * number + place)
                seconds[way] += time.monotonic() - began
    return [row for way in ways for row in _rows(way, asked[way], seconds[way])]


def _sessions(endpoint: Endpoint) -> Unrecorded:
    groups = ("keypoint_detection", "blocking_detection", "evaluation")
    return Unrecorded(dict.fromkeys(groups, endpoint), max_completion_tokens=_MAX_TOKENS, finding=hoped_for)


async def _judge(sessions: Unrecorded, number: int) -> None:
    episode = ended(Kind.SUCCESS, number, MAX_SCREENSHOTS, lambda seed: tiny_models.screenshot(seed, _WIDTH, _HEIGHT))
    judge = RubricJudge(sessions, committed_prompts(RUBRIC), JudgeConfig(judge=RUBRIC))
    await judge.judge(await episode.before_a_judge())


def _rows(way: str, sessions: Unrecorded, seconds: float) -> Iterator[Row]:
    for stage, stages in _STAGES.items():
        answers = [answer for inquiry, answer in sessions.answers if inquiry.stage in stages]
        yield _row(way, stage, answers, sum(answer.seconds for answer in answers))
    yield _row(way, "all, in wall time", [answer for _, answer in sessions.answers], seconds)


def _row(way: str, stage: str, answers: Sequence[Answer], seconds: float) -> Row:
    prompt_tokens, cached_tokens = sum(one.prompt_tokens for one in answers), sum(one.cached_tokens for one in answers)
    return Row(
        way=way,
        stage=stage,
        calls=len(answers) / _NUM_TRAJECTORIES,
        prompt_tokens=prompt_tokens / _NUM_TRAJECTORIES,
        cached_tokens=cached_tokens / _NUM_TRAJECTORIES,
        cached_share=cached_tokens / prompt_tokens,
        seconds=seconds / _NUM_TRAJECTORIES,
    )
