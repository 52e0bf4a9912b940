"""WebTailBench: 609 tasks of eleven kinds, each with a rubric."""

from collections.abc import Mapping

from ops.tasks.mapping import Benchmark, Kept, Mapped
from ops.tasks.values import IDS, json_object, name, text
from trainer.feeding.problems import Unfit, shown


def _facts(value: object) -> object:
    """A fact for each item of the rubric; an item that holds under a condition says so."""
    rubric = json_object(value, "rubric")
    if rubric is None:
        return None
    items = rubric.get("items")
    if not isinstance(items, list):
        raise Unfit(f"items {shown(items)} are no list")
    return [_fact(item) for item in items]


def _fact(item: object) -> object:
    if not isinstance(item, dict) or not isinstance(item.get("criterion"), str):
        raise Unfit(f"item {shown(item)} has no criterion")
    described = ": ".join(filter(None, (_words(item, "criterion"), _words(item, "description"))))
    condition = _words(item, "condition")
    return f"if {condition}: {described}" if condition else described


def _words(item: Mapping[str, object], key: str) -> str:
    value = item.get(key)
    return value.strip() if isinstance(value, str) else ""


BENCHMARK = Benchmark(
    name="webtailbench",
    published="`WebTailBench-v2-rubrics.tsv` and `WebTailBench-v1-rubrics.tsv` of the data set microsoft/WebTailBench",
    licence="MIT",
    rules=(
        Mapped("id", "task_id", name, IDS),
        Mapped("task_summary", "task_name", text),
        Mapped("benchmark", "subdomain", text, "the kind of task"),
        Mapped("init_url", "website", text, "else that of `--website`"),
        Mapped("precomputed_rubric", "evaluator_reference", _facts, "a fact for each item"),
        Kept("precomputed_rubric", "with its points, which no judge here gives"),
    ),
    constants={
        "domain": "webtailbench",
        "subdomain": "unknown",
        "difficulty": 0,
        "evaluator_reference": [],
        "definite_answer": None,
        "distribution": "ood",
        "benchmark_name": "webtailbench",
    },
    splits={"webtailbench-v1-rubrics": "test", "webtailbench": "test", "webtailbench-v2-rubrics": "test_v2"},
    notes=(
        "Most tasks name no page to start at: `--website` is where they do, such as a search engine.",
        "`WebTailBench-Refusals.tsv` is no file of tasks to do.",
    ),
)
