"""OpenWebRL: the tasks that it trains on and validates with, as its trainer reads them or in WebGym's schema."""

from ops.tasks.benchmarks import webgym
from ops.tasks.mapping import Benchmark, Mapped
from ops.tasks.values import IDS, name, site, text


def _asked(value: object) -> object:
    """The words of the first message of role user; None where there are none."""
    for message in value if isinstance(value, list) else ():
        if isinstance(message, dict) and message.get("role") == "user":
            return message.get("content")
    return None


BENCHMARK = Benchmark(
    name="openwebrl",
    published="`openwebrl/data/webgym_filtered_popular_2102_cleaned.parquet` and `openwebrl/data/webvoyager_val.parquet` of "
    "OpenWebRL/OpenWebRL; the data set OpenWebRL/OpenWebRL-RL-Tasks",
    licence="Apache-2.0",
    rules=(
        *webgym.BENCHMARK.rules,
        Mapped("prompt", "task_name", _asked, "the user's message, where `metadata.task` is missing"),
        Mapped("metadata.task", "task_name", text),
        Mapped("metadata.task_id", "task_id", name, IDS),
        Mapped("metadata.start_url", "subdomain", site, "its site"),
        Mapped("metadata.start_url", "website", text),
    ),
    constants={
        "domain": "openwebrl",
        "subdomain": "unknown",
        "difficulty": 0,
        "evaluator_reference": [],
        "definite_answer": None,
        "distribution": "id",
        "benchmark_name": "openwebrl",
    },
    splits={"webvoyager_val": "val"},
    split="train",
    notes=("The Parquet files publish neither facts nor answers: their judge goes by the instruction.",),
)
