"""Judging without a bus, as a process of its own: what the judge's own work and the client of its endpoint take.

python -m benchmarks.unrecorded_judging WAY BASE_URL NUM_AT_ONCE NUM_TRAJECTORIES

`judge` is the rubric judge on episodes in memory, without journal and budget; `client` sends the same requests, made
beforehand, with the bare `openai` client. Prints one JSON object.
"""

import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import anyio
import openai

from benchmarks.judged_episodes import Kind, ended, noise, verdict_word
from benchmarks.unrecorded_session import Unrecorded
from judges.endpoint.addresses import PLACEHOLDER_KEY
from judges.endpoint.opening import open_endpoints
from judges.endpoint.port import Answer, Endpoint, Question
from judges.endpoint.wire import messages_of, response_format
from judges.episode import JudgedEpisode
from judges.rubric.judge import RubricJudge
from judges.rubric.prompts import committed_prompts
from schemas.judge_config import JudgeConfig, OpenAIConfig, QuestionConfig
from schemas.messages import Verdict
from tests.support.judging.scripted_judging import RUBRIC

NUM_SCREENSHOTS, SCREENSHOT_KB = 12, 100
"""Of an episode, and the size of each."""
NUM_DIFFERENT = 8
"""Episodes, which are judged in turn: so many fit into memory."""
MODEL = "late"


@dataclass(frozen=True)
class Spent:
    seconds: float
    cpu_s: float


def openai_config(base_url: str, num_at_once: int) -> OpenAIConfig:
    """So many calls at once that the trajectories are the limit, but for the first burst of key points."""
    model = QuestionConfig(model=MODEL)
    return OpenAIConfig(
        base_url=base_url,
        model=MODEL,
        keypoint_detection=model,
        blocking_detection=model,
        max_concurrent=max(32, 4 * num_at_once),
        structured_output="json_schema",
    )


class _Scripted:
    """Answers at once, as the late endpoint will. Satisfies `judges.endpoint.port.Endpoint`."""

    model = MODEL

    async def ask(self, question: Question, *, max_completion_tokens: int) -> Answer:
        text = "\n".join(part for part in question.content if isinstance(part, str))
        word = verdict_word(question.schema_name, text)
        return Answer(text=json.dumps({"reasoning": "", "verdict": word}), finish_reason="stop")


async def _judge(episode: JudgedEpisode, endpoints: Mapping[str, Endpoint], config: OpenAIConfig) -> Unrecorded:
    sessions = Unrecorded(endpoints, max_completion_tokens=config.max_completion_tokens)
    judge = RubricJudge(sessions, committed_prompts(RUBRIC), JudgeConfig(judge=RUBRIC))
    ruling = await judge.judge(episode)
    assert ruling.verdict is Verdict.SUCCESS, ruling
    return sessions


async def _by_judge(config: OpenAIConfig, num_at_once: int, number: int) -> Spent:
    played = [ended(Kind.SUCCESS, each, NUM_SCREENSHOTS, noise(SCREENSHOT_KB)) for each in range(NUM_DIFFERENT)]

    async with open_endpoints(config, {}) as endpoints:

        async def judge(each: int) -> None:
            await _judge(await played[each % NUM_DIFFERENT].before_a_judge(), endpoints, config)

        return await _spent(judge, num_at_once, number)


async def _by_client(config: OpenAIConfig, num_at_once: int, number: int) -> Spent:
    rounds = [await _rounds(config, each) for each in range(NUM_DIFFERENT)]
    http_client = openai.DefaultAsyncHttpxClient(trust_env=False)
    turns = anyio.Semaphore(config.max_concurrent)
    async with openai.AsyncOpenAI(
        api_key=PLACEHOLDER_KEY, base_url=config.base_url, timeout=config.timeout_s, max_retries=0, http_client=http_client
    ) as client:

        async def ask(request: dict[str, Any]) -> None:
            async with turns:
                completion = await client.chat.completions.create(**request)
            json.loads(completion.choices[0].message.content or "")

        async def judge(each: int) -> None:
            for requests in rounds[each % NUM_DIFFERENT]:
                async with anyio.create_task_group() as group:
                    for request in requests:
                        group.start_soon(ask, request)

        return await _spent(judge, num_at_once, number)


async def _rounds(config: OpenAIConfig, number: int) -> Sequence[Sequence[dict[str, Any]]]:
    """One episode's requests, ready to send: those of one round at once, the rounds one after another."""
    episode = await ended(Kind.SUCCESS, number, NUM_SCREENSHOTS, noise(SCREENSHOT_KB)).before_a_judge()
    scripted = dict.fromkeys(("blocking_detection", "keypoint_detection", "evaluation"), _Scripted())
    asked = (await _judge(episode, scripted, config)).answers
    urls: dict[str, str] = {}

    def request(question: Question) -> dict[str, Any]:
        system, user = messages_of(question)
        content: Any = user["content"]
        for part in content:
            if part["type"] == "image_url":
                url = part["image_url"]["url"]
                part["image_url"]["url"] = urls.setdefault(url, url)
        return {
            "model": MODEL,
            "messages": [system, user],
            "max_completion_tokens": config.max_completion_tokens,
            "temperature": config.temperature,
            **response_format("json_schema", question),
        }

    rounds: list[list[dict[str, Any]]] = []
    for is_keypoint, same in groupby((inquiry for inquiry, _ in asked), lambda inquiry: inquiry.stage == "keypoint"):
        requests = [request(inquiry.question) for inquiry in same]
        rounds += [requests] if is_keypoint else [[one] for one in requests]
    return rounds


async def _spent(judge: Callable[[int], Awaitable[None]], num_at_once: int, number: int) -> Spent:
    left = iter(range(number))
    began, cpu = time.monotonic(), time.process_time()

    async def judge_some() -> None:
        for each in left:
            await judge(each)

    async with anyio.create_task_group() as group:
        for _ in range(num_at_once):
            group.start_soon(judge_some)
    return Spent(time.monotonic() - began, time.process_time() - cpu)


def main() -> None:
    way, base_url, num_at_once, number = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    measure = {"judge": _by_judge, "client": _by_client}[way]
    config = openai_config(base_url, num_at_once)
    print(json.dumps(asdict(anyio.run(measure, config, num_at_once, number, backend_options={"use_uvloop": True}))))


if __name__ == "__main__":
    main()
