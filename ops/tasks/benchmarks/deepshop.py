"""DeepShop: 150 shopping tasks, whose attributes, filters and sorting are judged apart."""

from ops.tasks.mapping import Benchmark, Kept, Mapped
from ops.tasks.values import CLASSES, IDS, difficulty, fact_of, name, text

_FACT = "one fact, none where it says None"

BENCHMARK = Benchmark(
    name="deepshop",
    published="`deepshop.jsonl` of the data set DeepShop/DeepShop; `data/deepshop_test.jsonl` of youganglyu/DeepShop",
    licence="CC-BY-4.0",
    rules=(
        Mapped("id", "task_id", name, IDS),
        Mapped("ques", "task_name", text),
        Mapped("web", "website", text),
        Mapped("category", "subdomain", text),
        Mapped("difficulty", "difficulty", difficulty, CLASSES),
        Mapped("attribute", "evaluator_reference", fact_of("attributes of the product"), _FACT),
        Mapped("filter", "evaluator_reference", fact_of("filters of the search"), _FACT),
        Mapped("sort", "evaluator_reference", fact_of("order of the results"), _FACT),
        Kept("web_name", "the site's name"),
    ),
    constants={
        "domain": "deepshop",
        "subdomain": "unknown",
        "difficulty": 0,
        "evaluator_reference": [],
        "definite_answer": None,
        "distribution": "ood",
        "benchmark_name": "deepshop",
    },
    splits={"deepshop_evol_600": "evolved", "shopping_seed": "seed"},
    split="test",
)
