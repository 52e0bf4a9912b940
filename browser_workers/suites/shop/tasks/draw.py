"""All tasks of a seed."""

import random

from browser_workers.suites.shop.catalogue import catalogue
from browser_workers.suites.shop.tasks import easy, hard, medium
from browser_workers.suites.shop.tasks.task import Draw, ShopTask, Template

_TEMPLATES = (*easy.TEMPLATES, *medium.TEMPLATES, *hard.TEMPLATES)
_NUM_A_TEMPLATE = 2
_MAX_DRAWS = 20


def shop_tasks(seed: int = 0) -> tuple[ShopTask, ...]:
    """Two tasks a template, one where it knows only one, in the order of the templates; the same for the same seed."""
    return tuple(task for template in _TEMPLATES for task in _drawn(template, seed))


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
