"""Online-Mind2Web: 300 tasks on 136 live sites."""

from ops.tasks.mapping import Benchmark, Kept, Mapped
from ops.tasks.values import CLASSES, IDS, difficulty, name, site, text

BENCHMARK = Benchmark(
    name="online-mind2web",
    published="`Online_Mind2Web.json` of the data set osunlp/Online-Mind2Web, after its terms were accepted",
    licence="CC-BY-4.0",
    rules=(
        Mapped("task_id", "task_id", name, IDS),
        Mapped("task_description", "task_name", text, "where the file has that name for it"),
        Mapped("confirmed_task", "task_name", text),
        Mapped("website", "subdomain", site, "its site"),
        Mapped("website", "website", text),
        Mapped("level", "difficulty", difficulty, CLASSES),
        Kept("reference_length", "steps that a person took"),
    ),
    constants={
        "domain": "online-mind2web",
        "subdomain": "unknown",
        "difficulty": 0,
        "evaluator_reference": [],
        "definite_answer": None,
        "distribution": "ood",
        "benchmark_name": "online-mind2web",
    },
    split="test",
    notes=("No facts and no answers are published: its judge finds key points in the instruction.",),
)
