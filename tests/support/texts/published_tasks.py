"""Invented tasks, laid out as the benchmarks publish theirs: file name and records."""

import csv
import json
from pathlib import Path
from typing import Any

Records = list[dict[str, Any]]

_RUBRIC = {
    "items": [
        {"criterion": "Lamp", "description": "a blue lamp is shown", "max_points": 2},
        {"criterion": "Order", "description": "nothing is ordered", "max_points": 1, "condition": "a basket is open"},
    ],
    "total_max_points": 3,
}
_MESSAGE = {"role": "user", "content": "Find a red kite"}
PUBLISHED: dict[str, tuple[str, Records]] = {
    "webgym": (
        "train.jsonl",
        [
            {
                "benchmark_name": "invented-live",
                "task_name": "Find the opening hours of the kite museum",
                "domain": "Lifestyle",
                "subdomain": "Museums",
                "website": "www.kites.example",
                "definite_answer": "",
                "task_id": "7",
                "difficulty": 5,
                "evaluator_reference": [{"id": 1, "description": "hours", "facts": ["it opens at 9", "it closes at 5"]}],
                "task_id_decomposed_from": None,
                "distribution": "id",
                "split": "train",
                "attempt_level": 2,
            },
            {
                "benchmark_name": "invented-live",
                "task_name": "Name the oldest kite",
                "domain": "Lifestyle",
                "subdomain": "Museums",
                "website": "https://kites.example/old",
                "definite_answer": "the dragon",
                "task_id": "8",
                "difficulty": 1,
                "evaluator_reference": "the oldest kite is shown",
                "task_id_decomposed_from": "7",
            },
        ],
    ),
    "openwebrl": (
        "webgym_filtered_popular_2102_cleaned.parquet",
        [
            {
                "prompt": [_MESSAGE],
                "metadata": {"task_id": "webgym/41", "start_url": "https://kites.example/", "task": "Find a red kite"},
            }
        ],
    ),
    "online-mind2web": (
        "Online_Mind2Web.json",
        [
            {
                "task_id": "00ff_110325",
                "confirmed_task": "Put a kite of two lines into the basket",
                "website": "https://shop.kites.example/",
                "reference_length": 6,
                "level": "medium",
            }
        ],
    ),
    "webvoyager": (
        "WebVoyager_data.jsonl",
        [
            {
                "web_name": "Kite World",
                "id": "Kite World--3",
                "ques": "Which kite is the longest?",
                "web": "https://kites.example",
            },
            {
                "task_id": "aa-1",
                "Level": 2,
                "Final answer": "17",
                "id": "level2-0",
                "web": "https://search.example",
                "ques": "How many kites flew in 1950?",
            },
        ],
    ),
    "deepshop": (
        "deepshop.jsonl",
        [
            {
                "web_name": "Kites",
                "id": "Kites--4",
                "ques": "Find a kite with at least 4 stars, cheapest first",
                "web": "https://kites.example/?language=en",
                "attribute": "a kite",
                "filter": "at least 4 stars",
                "sort": "None",
                "category": "Sports",
                "difficulty": "hard",
            }
        ],
    ),
    "webarena-verified": (
        "webarena-verified.json",
        [
            {
                "sites": ["shopping", "map"],
                "task_id": 901,
                "intent_template_id": 12,
                "start_urls": ["__SHOPPING__/kites", "__MAP__"],
                "intent": "Get the two newest kites",
                "intent_template": "Get the {{n}} newest kites",
                "instantiation_dict": {"n": 2},
                "eval": [
                    {
                        "evaluator": "AgentResponseEvaluator",
                        "results_schema": {"type": "array"},
                        "expected": {"task_type": "retrieve", "status": "SUCCESS", "retrieved_data": ["Dragon", 4]},
                    },
                    {"evaluator": "NetworkEventEvaluator", "expected": {"url": "__SHOPPING__/kites"}},
                ],
                "revision": 2,
            },
            {
                "sites": ["map"],
                "task_id": 902,
                "intent_template_id": 13,
                "start_urls": ["__MAP__"],
                "intent": "Get the way to a place that is nowhere",
                "intent_template": "Get the way to {{place}}",
                "instantiation_dict": {"place": "nowhere"},
                "eval": [
                    {
                        "evaluator": "AgentResponseEvaluator",
                        "results_schema": {"type": "null"},
                        "expected": {"task_type": "retrieve", "status": "NOT_FOUND_ERROR", "retrieved_data": None},
                    }
                ],
                "revision": 2,
            },
        ],
    ),
    "webtailbench": (
        "WebTailBench-v2-rubrics.tsv",
        [
            {
                "benchmark": "shopping_head",
                "id": "kites_find_1",
                "task_summary": "Find a blue lamp\tor a kite",
                "init_url": "",
                "precomputed_rubric": json.dumps(_RUBRIC),
            }
        ],
    ),
}
"""By benchmark."""
OPTIONS = {
    "webarena-verified": ("--address", "SHOPPING=http://localhost:7770/", "--address", "__MAP__=http://localhost:3030"),
    "webtailbench": ("--website", "https://search.example"),
}
"""What `millrace tasks prepare` has to be told besides."""


def publish(folder: Path, benchmark: str) -> Path:
    name, records = PUBLISHED[benchmark]
    return write(folder / name, records)


def write(file: Path, records: Records) -> Path:
    match file.suffix:
        case ".jsonl":
            file.write_text("".join(json.dumps(record) + "\n" for record in records))
        case ".json":
            file.write_text(json.dumps(records, indent=1))
        case ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.Table.from_pylist(records), file)
        case suffix:
            with file.open("w", newline="") as lines:
                rows = csv.DictWriter(lines, list(records[0]), delimiter="\t" if suffix == ".tsv" else ",")
                rows.writeheader()
                rows.writerows(records)
    return file
