"""`webarena_verified_v1` with the benchmark's own package: what it says of answers and of traffic.

Tasks are invented, in the benchmark's form; the last ones are its published examples, described by hand.
"""

import errno
import json
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from browser_workers.har.exchange import Exchange
from judges.attempts import rule
from judges.named.webarena_verified_v1 import NAME
from judges.webarena import examiner
from judges.webarena.examiner import ProcessExaminer, open_examiner
from judges.webarena.judge import WebArenaVerifiedJudge
from schemas.errors import ConfigurationError, JudgeError
from schemas.messages import Task, Verdict
from tests.deadlines import HANGS_S
from tests.support.judging.webarena import (
    SHOP,
    answers,
    evaluated,
    of_kind,
    package_python,
    played,
    post,
    recorded,
    sends,
    visit,
)

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
NUMBERS = {"type": "array", "items": {"type": "number"}}
BOOLEANS = {"type": "array", "items": {"type": "boolean"}}
OBJECTS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "price": {"type": "string", "format": "currency"}},
    },
}
TASKS = {
    "names": evaluated(answers(data=["Dragon", "Box Kite"])),
    "ordered": evaluated(answers(data=["first", "second"], ordered=True)),
    "price": evaluated(answers(data=["$1,212.50"], schema=of_kind("currency"))),
    "date": evaluated(answers(data=["2023-02-01"], schema=of_kind("date"))),
    "number": evaluated(answers(data=[1200], schema=NUMBERS)),
    "boolean": evaluated(answers(data=[True], schema=BOOLEANS)),
    "distance": evaluated(answers(data=["2km"], schema=of_kind("distance"))),
    "duration": evaluated(answers(data=["1h 5min"], schema=of_kind("duration"))),
    "objects": evaluated(answers(data=[{"name": "Dragon", "price": "$5"}, {"name": "Box", "price": "$7"}], schema=OBJECTS)),
    "either": evaluated(answers(data=[["Dragon", "Dragon Kite"]])),
    "in vain": evaluated(answers(status="NOT_FOUND_ERROR")),
    "change": evaluated(answers("mutate")),
}


def said(data: Any = None, *, kind: str = "RETRIEVE", status: str = "SUCCESS", **more: Any) -> str:
    return json.dumps({"task_type": kind, "status": status, "retrieved_data": data, "error_details": None, **more})


ANSWERS: list[tuple[str, str, bool]] = [
    # Right, in every way of saying it.
    ("names", said(["Dragon", "Box Kite"]), True),
    ("names", said(["box kite", "DRAGON"]), True),
    ("names", said(["  Dragon ", "Box Kite"], error_details="none"), True),
    ("names", "```json\n" + said(["Dragon", "Box Kite"]) + "\n```", True),
    ("names", said(["Dragon", "Box Kite"], kind="retrieve", status="success"), True),
    ("ordered", said(["first", "second"]), True),
    ("price", said(["1212.50"]), True),
    ("price", said([1212.5]), True),
    ("price", said("USD 1,212.50"), True),
    ("date", said(["February 1, 2023"]), True),
    ("number", said(["1,200"]), True),
    ("number", said([1200.0]), True),
    ("boolean", said([True]), True),
    ("distance", said(["2010 m"]), True),
    ("duration", said(["65 minutes"]), True),
    ("objects", said([{"name": "Box", "price": 7}, {"name": "dragon", "price": "5.00 USD"}]), True),
    ("either", said(["Dragon Kite"]), True),
    ("in vain", said(None, status="NOT_FOUND_ERROR"), True),
    ("change", said(None, kind="MUTATE"), True),
    # Wrong, or not all of it.
    ("names", said(["Dragon"]), False),
    ("names", said(["Dragon", "Box Kite", "Box Kite"]), False),
    ("names", said([]), False),
    ("names", said(None), False),
    ("ordered", said(["second", "first"]), False),
    ("price", said(["1212.80"]), False),
    ("date", said(["2023-01-02"]), False),
    ("number", said([1201]), False),
    ("boolean", said([False]), False),
    ("distance", said(["2100 m"]), False),
    ("objects", said([{"name": "Dragon", "price": 7}, {"name": "Box", "price": 5}]), False),
    ("either", said(["Box Kite"]), False),
    # Contradictory.
    ("names", said(["Dragon", "Box Kite"], status="NOT_FOUND_ERROR"), False),
    ("names", said(["Dragon", "Box Kite"], kind="MUTATE"), False),
    ("in vain", said(["there is none"], status="NOT_FOUND_ERROR"), False),
    ("change", said(None, kind="NAVIGATE"), False),
    # Hostile.
    ("distance", said(["9**9**9 m"]), False),
    ("names", said([{"Dragon": ["Box Kite"]}, [[["Dragon"]]]]), False),
    ("names", said(["^.*$", ".*"]), False),
    ("names", said({"expected": "Dragon"}, score=1.0, evaluators_results=[]), False),
    # Truncated, and no JSON at all.
    ("names", said(["Dragon", "Box Kite"])[:-25], False),
    ("names", "The kites are Dragon and Box Kite.", False),
]
CART = evaluated(
    answers("mutate"),
    sends("__SHOPPING__/cart/add", http_method="POST", response_status=302, post_data={"id": "3", "qty": "2"}),
)
KITES = evaluated(answers("navigate"), sends("__SHOPPING__/kites?sort=price"))
UNTOUCHED = evaluated(answers("mutate"), sends("__SHOPPING__/contact", http_method="POST", should_not_exist=True))
CHANGED, OPENED = said(None, kind="MUTATE"), said(None, kind="NAVIGATE")
TRAFFIC: list[tuple[Task, str, Sequence[Exchange], bool]] = [
    (CART, CHANGED, [visit("/"), post("/cart/add", "id=3&qty=2")], True),
    (CART, CHANGED, [post("/cart/add", "id=4&qty=1"), post("/cart/add", "id=3&qty=2")], True),
    (CART, CHANGED, [visit("/"), post("/cart/add", "id=3&qty=1")], False),
    (CART, CHANGED, [post("/cart/add", "id=3&qty=2"), post("/cart/add", "id=4&qty=2")], False),
    (CART, CHANGED, [post("/cart/add", "id=3&qty=2", status=500)], False),
    (CART, CHANGED, [visit("/cart/add?id=3&qty=2")], False),
    (CART, CHANGED, [visit("/")], False),
    (CART, CHANGED, [], False),
    (CART, said(None, kind="NAVIGATE"), [post("/cart/add", "id=3&qty=2")], False),
    (KITES, OPENED, [visit("/"), visit("/kites?sort=price")], True),
    (KITES, OPENED, [visit("/kites?sort=price"), visit("/")], False),
    (KITES, OPENED, [visit("/kites?sort=name")], False),
    (KITES, OPENED, [visit("/kites?sort=price", status=404)], False),
    (KITES, OPENED, [visit("/", url="http://elsewhere.test/kites?sort=price")], False),
    (UNTOUCHED, CHANGED, [visit("/contact")], True),
    (UNTOUCHED, CHANGED, [post("/contact", "text=hi", status=200)], False),
]
_TODOS = {
    "url": ["__GITLAB__/dashboard/todos", "__GITLAB__/dashboard/todos?state=pending"],
}
PUBLISHED = {
    "top product of 2022 (task 0)": (answers(data=["Quest Lumaflex™ Band"]), said(["Quest Lumaflex Band"]), ()),
    "open my todos (task 44)": (answers("navigate"), OPENED, ("/dashboard/todos?page=2",)),
}
"""Answer evaluator, answer, and where the episode ended: what the benchmark's documentation tells of these tasks."""

ENDS_ONCE = f"""
import os, pathlib, sys
print('{{"version": "{examiner.VERSION}"}}', flush=True)
ended = pathlib.Path(sys.argv[1])
for question in sys.stdin:
    if not ended.exists():
        ended.touch()
        os.kill(os.getpid(), int(sys.argv[2]))
    print('{{"found": [{{"evaluator": "AgentResponseEvaluator", "status": "success"}}]}}', flush=True)
"""
"""In place of the package: ends itself by a signal at the first question of all, and finds what it expects from then on."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def judge() -> AsyncIterator[WebArenaVerifiedJudge]:
    async with open_examiner(package_python()) as examiner:
        yield WebArenaVerifiedJudge(NAME, examiner)


async def verdict(judge: WebArenaVerifiedJudge, task: Task, answer: str, exchanges: Sequence[Exchange] | None) -> Verdict:
    record = recorded(task, exchanges) if exchanges is not None else None
    return (await judge.judge(played(task, answer, record))).verdict


@pytest.mark.parametrize(("name", "answer", "passed"), ANSWERS)
async def test_answers(judge: WebArenaVerifiedJudge, name: str, answer: str, passed: bool) -> None:
    ruling = await judge.judge(played(TASKS[name], answer))
    assert ruling.verdict is (Verdict.SUCCESS if passed else Verdict.FAILURE), ruling
    assert all(stage.reasoning for stage in ruling.stages)


@pytest.mark.parametrize(("task", "answer", "exchanges", "passed"), TRAFFIC)
async def test_traffic(
    judge: WebArenaVerifiedJudge, task: Task, answer: str, exchanges: Sequence[Exchange], passed: bool
) -> None:
    assert await verdict(judge, task, answer, exchanges) is (Verdict.SUCCESS if passed else Verdict.FAILURE)


@pytest.mark.parametrize("name", PUBLISHED)
async def test_published_examples(judge: WebArenaVerifiedJudge, name: str) -> None:
    response, answer, paths = PUBLISHED[name]
    gitlab = {"gitlab": "http://gitlab.test"}
    todos = {"evaluator": "NetworkEventEvaluator", "ignored_query_params_patterns": ["page", "sort"], "expected": _TODOS}
    task = evaluated(response, todos, sites=gitlab) if paths else evaluated(response)
    there = [visit("/", url=f"http://gitlab.test{path}") for path in paths]
    assert await verdict(judge, task, answer, there) is Verdict.SUCCESS
    assert await verdict(judge, task, answer.replace("SUCCESS", "UNKNOWN_ERROR"), there) is Verdict.FAILURE
    if paths:
        assert await verdict(judge, task, answer, [*there, visit("/", url="http://gitlab.test/dashboard")]) is Verdict.FAILURE


async def test_a_site_that_the_benchmark_does_not_know_is_no_verdict(judge: WebArenaVerifiedJudge) -> None:
    task = evaluated(answers(data=["Dragon"]), sites={"nowhere": SHOP})
    assert await verdict(judge, task, said(["Dragon"]), None) is Verdict.ERROR


async def test_two_episodes_at_a_time_do_not_mix_up(judge: WebArenaVerifiedJudge) -> None:
    found: dict[str, Verdict] = {}

    async def one(data: str) -> None:
        found[data] = await verdict(judge, TASKS["either"], said([data]), None)

    async with anyio.create_task_group() as group:
        for data in ("Dragon", "Box Kite", "Dragon Kite", "Kite"):
            group.start_soon(one, data)
    assert [found[data] for data in ("Dragon", "Box Kite", "Dragon Kite", "Kite")] == [Verdict.SUCCESS, Verdict.FAILURE] * 2


async def test_another_process_takes_the_place_of_one_that_ended() -> None:
    asked = ProcessExaminer(package_python(), answer_s=2.0)
    try:
        await asked.start()
        judge = WebArenaVerifiedJudge(NAME, asked)
        ruling = await judge.judge(played(TASKS["distance"], said(["9**9**9 m"])))
        assert (ruling.verdict, ruling.stages[0].stage) == (Verdict.FAILURE, "response")
        assert "took more than 2 s" in ruling.stages[0].reasoning
        assert await verdict(judge, TASKS["distance"], said(["2 km"]), None) is Verdict.SUCCESS
    finally:
        await asked.close()


async def test_a_process_that_stands_still_says_nothing_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ProcessExaminer("")
    greets = f'import time; print(\'{{"version": "{examiner.VERSION}"}}\', flush=True); time.sleep({HANGS_S})'
    asked._command = [sys.executable, "-c", greets]
    await asked.start()
    monkeypatch.setattr(examiner, "_HANGS_S", 1.0)
    with pytest.raises(JudgeError):
        await verdict(WebArenaVerifiedJudge(NAME, asked), TASKS["distance"], said(["2 km"]), None)


@pytest.mark.parametrize(
    ("ends_by", "expected"),
    [(signal.SIGKILL, Verdict.SUCCESS), (signal.SIGTERM, Verdict.SUCCESS), (signal.SIGPROF, Verdict.FAILURE)],
)
async def test_a_process_that_somebody_ends_says_nothing_of_an_answer(
    ends_by: signal.Signals, expected: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judges.attempts.retry_delay_s", lambda _: 0.0)
    asked = ProcessExaminer("")
    asked._command = [sys.executable, "-c", ENDS_ONCE, str(tmp_path / "ended"), str(int(ends_by))]
    episode = played(TASKS["distance"], said(["2 km"]))
    try:
        ruling = await rule(WebArenaVerifiedJudge(NAME, asked), episode, max_attempts=2)
    finally:
        await asked.close()
    assert ruling.verdict is expected, ruling


async def test_a_process_that_does_not_come_up_this_time_is_no_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    async def has_no_room(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    judges = ProcessExaminer(package_python())
    with monkeypatch.context() as full:
        full.setattr(examiner, "start_process", has_no_room)
        with pytest.raises(JudgeError, match="cannot be started: Resource temporarily unavailable"):
            await judges.start()
    with monkeypatch.context() as slow:
        slow.setattr(examiner, "_START_S", 0.0)
        with pytest.raises(JudgeError, match="did not come up within 0 s"):
            await judges.start()
    assert await verdict(WebArenaVerifiedJudge(NAME, judges), TASKS["distance"], said(["2 km"]), None) is Verdict.SUCCESS
    await judges.close()


async def test_a_python_without_the_package_is_named() -> None:
    for python in ("/bin/false", "/no/such/python"):
        with pytest.raises(ConfigurationError, match=r"judge_config\.webarena_python"):
            async with open_examiner(python):
                raise AssertionError
