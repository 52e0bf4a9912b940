"""WebArena-Verified: 812 tasks on sites that are started from images, with evaluators of their own."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ops.tasks.mapping import Benchmark, Kept, Mapped, Unused
from trainer.feeding.problems import Unfit, shown

_SCHEMAS = ("results_schema", "query_params_schema", "post_data_schema")
_COMPARED = ("retrieved_data", "url", "headers", "query_params", "post_data", "response_content", "response_cookies")
_EXPECTED = "expected"
_NESTED = (_EXPECTED, *_SCHEMAS)
"""Fields that hold lists and objects."""
_ANSWERS, _DONE = "AgentResponseEvaluator", "SUCCESS"


def _first(value: object) -> object:
    if not isinstance(value, list) or not value:
        raise Unfit(f"{shown(value)} is no list of addresses")
    return value[0]


def _sites(value: object) -> object:
    if not isinstance(value, list) or not all(isinstance(site, str) for site in value):
        raise Unfit(f"{shown(value)} is no list of names of sites")
    return "+".join(value) or None


def _expected(value: object) -> Iterator[Mapping[str, object]]:
    """What the agent's response is compared with."""
    if not isinstance(value, list):
        raise Unfit(f"{shown(value)} is no list of evaluators")
    for item in value:
        expected = item.get("expected") if isinstance(item, dict) and item.get("evaluator") == _ANSWERS else None
        if isinstance(expected, dict):
            yield expected


def _retrieved(value: object) -> object:
    for expected in _expected(value):
        data = expected.get("retrieved_data")
        if str(expected.get("task_type")).lower() == "retrieve" and expected.get("status") == _DONE and isinstance(data, list):
            return "; ".join(item if isinstance(item, str) else msgspec.json.encode(item).decode() for item in data) or None
    return None


def _evaluation(record: Mapping[str, object], addresses: Mapping[str, str]) -> object:
    """For `webarena_verified_v1`; and what of the traffic browser workers keep for it."""
    evaluators, sites = record.get("eval"), record.get("sites")
    if not isinstance(evaluators, list) or not isinstance(sites, list):
        return None
    for site in sites:
        if (name := str(site).upper()) not in addresses:
            raise Unfit(
                f"it compares addresses of the site {site}: say where yours is, as in --address {name}=http://host:port"
            )
    opened = [_opened(item) for item in evaluators if isinstance(item, dict)]
    expected = [item[_EXPECTED] for item in opened if isinstance(item.get(_EXPECTED), dict)]
    cookies = [each["response_cookies"] for each in expected if isinstance(each.get("response_cookies"), dict)]
    return {
        "task_id": record.get("task_id"),
        "intent_template_id": record.get("intent_template_id", 0),
        "revision": record.get("revision", 1),
        "sites": {str(site): addresses[str(site).upper()].rstrip("/") for site in sites},
        "eval": opened,
        "traffic": {
            "cookies": sorted({name for names in cookies for name in names}),
            "bodies": any(each.get("response_content") for each in expected),
        },
    }


def _opened(item: Mapping[str, Any]) -> dict[str, Any]:
    """With objects and lists where its Parquet files have them as JSON in texts."""
    opened = {name: _decoded(value) if name in _NESTED else value for name, value in item.items()}
    if isinstance(expected := opened.get(_EXPECTED), dict):
        opened[_EXPECTED] = {name: _decoded(value) if name in _COMPARED else value for name, value in expected.items()}
    return opened


def _decoded(value: object) -> object:
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return value
    return value


def _published(value: object) -> object:
    """Put together with the addresses of sites, behind all other fields."""
    return None if value is None else {}


def _in_vain(value: object) -> object:
    found = [expected.get("status") for expected in _expected(value)]
    return [f"the answer says that the task cannot be done as asked ({status})" for status in found if status != _DONE]


BENCHMARK = Benchmark(
    name="webarena-verified",
    published="`assets/dataset/webarena-verified.json` of ServiceNow/webarena-verified; `full.parquet` and `hard.parquet` of "
    "the data set AmineHA/WebArena-Verified",
    licence="Apache-2.0",
    rules=(
        Mapped("task_id", "task_id"),
        Mapped("intent", "task_name"),
        Mapped("sites", "subdomain", _sites, "joined by `+`"),
        Mapped("start_urls", "website", _first, "the first, with the addresses of `--address`"),
        Kept("start_urls", "all of them"),
        Mapped("eval", "definite_answer", _retrieved, "`retrieved_data` of what is to be retrieved"),
        Mapped("eval", "evaluator_reference", _in_vain, "a fact where the task cannot be done"),
        Mapped("eval", "evaluation", _published, "with the addresses of its sites: what `webarena_verified_v1` runs"),
        Kept("intent_template_id", "tasks of one template"),
        Unused("intent_template", "`intent` is made of it"),
        Unused("instantiation_dict", "`intent` is made with it"),
        Kept("revision"),
    ),
    constants={
        "domain": "webarena-verified",
        "subdomain": "unknown",
        "difficulty": 0,
        "evaluator_reference": [],
        "definite_answer": None,
        "distribution": "ood",
        "benchmark_name": "webarena-verified",
    },
    evaluation=_evaluation,
    splits={"hard": "hard", "webarna-verfied-hard": "hard", "webarena-verified-hard": "hard"},
    split="full",
    notes=(
        "Sites stand as `__SHOPPING__` and the like: `--address SHOPPING=http://host:7770` says where yours is.",
        "`judge_config.judge=webarena_verified_v1` runs the benchmark's own evaluators: it needs the extra `webarena`, "
        "`browser_config.record_network=true` and `context_config.answer_form=webarena_verified`.",
    ),
)
