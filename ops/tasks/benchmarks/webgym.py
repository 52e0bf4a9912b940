"""WebGym: about 300,000 tasks for training and testing, in the schema that task files have here."""

from ops.tasks.mapping import Benchmark, Mapped
from ops.tasks.values import IDS, difficulty, name, text

BENCHMARK = Benchmark(
    name="webgym",
    published="`train.jsonl` and `test.jsonl` of the data set microsoft/webgym_tasks",
    licence="CDLA-Permissive-2.0",
    rules=(
        Mapped("task_id", "task_id", name, IDS),
        Mapped("task_name", "task_name"),
        Mapped("website", "website", text),
        Mapped("domain", "domain", text),
        Mapped("subdomain", "subdomain", text),
        Mapped("difficulty", "difficulty", difficulty),
        Mapped("evaluator_reference", "evaluator_reference"),
        Mapped("definite_answer", "definite_answer", text, "an empty text: none"),
        Mapped("attempt_level", "attempt_level"),
        Mapped("distribution", "distribution", text),
        Mapped("split", "split", text, "else by the file's name"),
        Mapped("benchmark_name", "benchmark_name"),
        Mapped("task_id_decomposed_from", "task_id_decomposed_from"),
    ),
    constants={
        "domain": "unknown",
        "subdomain": "unknown",
        "definite_answer": None,
        "evaluator_reference": [],
        "distribution": "ood",
    },
    splits={"train": "train", "test": "test"},
    notes=("A line without `distribution` is `ood`, as WebGym reads it.",),
)
