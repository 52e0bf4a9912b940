"""The lines of a task file over the shop."""

from collections.abc import Mapping
from typing import Any

import msgspec

from browser_workers.suites.shop.suite import NAME, SOLUTION
from browser_workers.suites.shop.tasks.draw import shop_tasks
from browser_workers.suites.shop.tasks.task import Difficulty, FactGroup, ShopTask


def task_lines(seed: int = 0, difficulty: Difficulty | None = None) -> list[Mapping[str, Any]]:
    """In WebGym's format, with checks; `website` names the task's solution too, which the page is not told."""
    return [
        _line(task, seed, number)
        for number, task in enumerate(shop_tasks(seed))
        if difficulty is None or task.difficulty in difficulty.value
    ]


def _line(task: ShopTask, seed: int, number: int) -> Mapping[str, Any]:
    return {
        "task_id": f"shop_{number}",
        "task_name": task.instruction,
        "domain": NAME,
        "subdomain": task.template,
        "website": f"{NAME}:{task.start}{'&' if '?' in task.start else '?'}{SOLUTION}={seed}.{number}",
        "difficulty": task.difficulty,
        "evaluator_reference": [_fact(each, task.difficulty) for each in task.facts],
        "definite_answer": task.answer,
        "checks": msgspec.to_builtins(task.checks),
    }


def _fact(fact: str | FactGroup, difficulty: int) -> Mapping[str, Any]:
    if isinstance(fact, FactGroup):
        return {"description": fact.description, "facts": [_fact(each, difficulty) for each in fact.facts]}
    return {"description": fact, "difficulty": difficulty}
