"""Lines of a task file over a suite of grids; no page has to be opened for them."""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, urlencode

from browser_workers.grids.level import Level, instruction
from browser_workers.grids.suite import GridSuite
from browser_workers.suites import UnknownWebsite

_DIFFICULTIES = ((5, 2), (10, 5))
"""Moves at most, and the difficulty of such a level: the default step caps of training leave at least twice as many."""
_HARD = 8


def grid_tasks(
    suite: GridSuite, sizes: Sequence[int], seeds: Sequence[int], parameters: str = "", *, first_id: int = 0
) -> list[Mapping[str, object]]:
    """One line for every size and seed, numbered from `first_id`. `parameters` are those of the website, but for these two.

    Raises:
        UnknownWebsite: a size or a parameter is wrong.
    """
    more = parse_qsl(parameters, keep_blank_values=True)
    if taken := [name for name, _ in more if name in ("size", "seed")]:
        raise UnknownWebsite(f"the parameters say {taken[0]}: leave it to --{taken[0]}s")
    numbers = ((size, seed) for size in sizes for seed in seeds)
    return list(_lines(suite, numbers, more, first_id))


def _lines(
    suite: GridSuite, numbers: Iterator[tuple[int, int]], more: list[tuple[str, str]], first_id: int
) -> Iterator[Mapping[str, object]]:
    for task_id, (size, seed) in enumerate(numbers, start=first_id):
        query = urlencode([("size", str(size)), ("seed", str(seed)), *more])
        level = suite.level(query)
        yield {
            "task_id": task_id,
            "task_name": instruction(level),
            "domain": suite.name,
            "subdomain": f"{size}x{size}",
            "website": f"{suite.name}:{suite.page}?{query}",
            "difficulty": difficulty(level),
            "evaluator_reference": instruction(level),
            "definite_answer": None,
        }


def difficulty(level: Level) -> int:
    return next((value for most, value in _DIFFICULTIES if level.num_moves <= most), _HARD)
