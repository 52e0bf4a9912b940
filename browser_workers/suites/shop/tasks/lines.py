"""All tasks of a seed, and the lines of a task file that they make."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from browser_workers.suites.shop.catalogue import catalogue
from browser_workers.suites.shop.suite import NAME
from browser_workers.suites.shop.tasks import easy, hard, medium
from browser_workers.suites.shop.tasks.task import Difficulty, Draw, ShopTask, Template

_TEMPLATES = (*easy.TEMPLATES, *medium.TEMPLATES, *hard.TEMPLATES)
_NUM_A_TEMPLATE = 2
_MAX_DRAWS = 20


def shop_tasks(seed: int = 0, difficulty: Difficulty | None = None) -> tuple[ShopTask, ...]:
    """Two tasks a template, one where it knows only one, in the order of the templates; the same for the same seed."""
    made = [task for template in _TEMPLATES for task in _drawn(template, seed)]
    return tuple(task for task in made if difficulty is None or task.difficulty in difficulty.value)


def task_lines(tasks: Sequence[ShopTask]) -> list[Mapping[str, Any]]:
    """In WebGym's format, with checks."""
    return [
        {
            "task_id": f"shop_{index}",
            "task_name": task.instruction,
            "domain": NAME,
            "subdomain": task.template,
            "website": f"{NAME}:{task.start}",
            "difficulty": task.difficulty,
            "evaluator_reference": task.instruction,
            "definite_answer": task.answer,
            "checks": msgspec.to_builtins(task.checks),
        }
        for index, task in enumerate(tasks)
    ]


def _drawn(template: Template, seed: int) -> list[ShopTask]:
    # By name, so that another template beside it changes nothing.
    draw = Draw(catalogue(), random.Random(f"{template.__name__} {seed}"))  # noqa: S311
    made: dict[str, ShopTask] = {}
    for _ in range(_MAX_DRAWS):
        task = template(draw)
        made.setdefault(task.instruction, task)
        if len(made) == _NUM_A_TEMPLATE:
            break
    return list(made.values())
