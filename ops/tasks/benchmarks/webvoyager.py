"""WebVoyager: 643 tasks on 15 live sites, and the web tasks of GAIA that come with them."""

from ops.tasks.mapping import Benchmark, Kept, Mapped
from ops.tasks.values import IDS, name, site, text
from trainer.feeding.problems import Unfit, shown

_LEVELS = {1: 1, 2: 4, 3: 7}


def _level(value: object) -> object:
    level = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(level, bool) or not isinstance(level, int) or level not in _LEVELS:
        raise Unfit(f"{shown(value)} is none of the levels 1, 2 and 3")
    return _LEVELS[level]


BENCHMARK = Benchmark(
    name="webvoyager",
    published="`data/WebVoyager_data.jsonl` and `data/GAIA_web.jsonl` of MinorJerry/WebVoyager",
    licence="MIT (repository)",
    rules=(
        Mapped("id", "task_id", name, IDS),
        Mapped("ques", "task_name", text),
        Mapped("web", "subdomain", site, "its site, where `web_name` is missing"),
        Mapped("web_name", "subdomain", text),
        Mapped("web", "website", text),
        Mapped("Level", "difficulty", _level, "GAIA's levels 1, 2 and 3 become 1, 4 and 7"),
        Mapped("Final answer", "definite_answer", text),
        Kept("task_id", "GAIA's own"),
    ),
    constants={
        "domain": "webvoyager",
        "subdomain": "unknown",
        "difficulty": 0,
        "evaluator_reference": [],
        "definite_answer": None,
        "distribution": "ood",
        "benchmark_name": "webvoyager",
    },
    split="test",
    notes=("`data/reference_answer.json` is not read: most of its answers are examples, or change with the day.",),
)
