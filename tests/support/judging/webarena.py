"""Tasks in WebArena-Verified's form, traffic as a browser worker records it, and where the benchmark's package is."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import msgspec
import pytest

from browser_workers.har.exchange import Exchange
from browser_workers.har.log import NetworkLog
from bus.chain import EpisodeChain
from bus.codec import encode
from bus.evidence import Evidence
from bus.memory import MemoryBus
from bus.subjects import Subjects
from judges.episode import JudgedEpisode
from schemas.messages import NetworkRecord, Outcome, Task
from tests import builders

SUBJECTS = Subjects(builders.RUN)
SHOP = "http://shop.test:7770"
HTML = (("accept", "text/html,application/xhtml+xml"),)
FORM = (("content-type", "application/x-www-form-urlencoded"),)
_SETTINGS = ("should_not_exist", "last_event_only", "ignored_query_params")
_PYTHON = "MILLRACE_WEBARENA_PYTHON"


def package_python() -> str:
    """The Python whose environment has the package; skips where there is none."""
    named = os.environ.get(_PYTHON, "")
    if not named and find_spec("webarena_verified") is None:
        pytest.skip(f"webarena-verified is not here: .ci/webarena installs it and names its Python in {_PYTHON}")
    return named or sys.executable


def answers(
    task_type: str = "retrieve", status: str = "SUCCESS", data: Any = None, *, schema: Any = None, **settings: Any
) -> dict[str, Any]:
    """An evaluator of the answer."""
    return {
        "evaluator": "AgentResponseEvaluator",
        "results_schema": schema or {"type": "null" if data is None else "array", "items": {"type": "string"}},
        "expected": {"task_type": task_type, "status": status, "retrieved_data": data},
        **settings,
    }


def of_kind(kind: str, **inner: Any) -> dict[str, Any]:
    """A schema of one column."""
    return {"type": "array", "items": {"type": "string", "format": kind, **inner}}


def sends(url: str, **expected: Any) -> dict[str, Any]:
    """An evaluator of the traffic."""
    settings: dict[str, Any] = {name: expected.pop(name) for name in _SETTINGS if name in expected}
    return {"evaluator": "NetworkEventEvaluator", "expected": {"url": url, **expected}, **settings}


def evaluated(
    *evaluators: Mapping[str, Any], sites: Mapping[str, str] | None = None, traffic: Mapping[str, Any] | None = None
) -> Task:
    evaluation = {
        "task_id": 900,
        "intent_template_id": 9,
        "revision": 1,
        "sites": sites or {"shopping": SHOP},
        "eval": evaluators,
        "traffic": traffic or {},
    }
    return msgspec.structs.replace(builders.task(), evaluation=msgspec.json.encode(evaluation).decode())


def visit(path: str, **changes: Any) -> Exchange:
    """A document that was opened."""
    values = {"method": "GET", "url": SHOP + path, "started_at": 1.0, "status": 200, "request_headers": HTML, **changes}
    return Exchange(**values)


def post(path: str, body: str, *, status: int = 302) -> Exchange:
    return visit(path, method="POST", body=body.encode(), request_headers=FORM, status=status)


def recorded(of: Task, exchanges: Sequence[Exchange], *, attempt: int = 1, max_entries: int = 100) -> NetworkRecord:
    log = NetworkLog(max_entries, 1_000_000)
    for exchange in exchanges:
        log.begin(exchange)
    return log.record(EpisodeChain(MemoryBus(SUBJECTS), SUBJECTS, of, attempt, 0), attempt - 1)


def played(
    of: Task, answer: str, record: NetworkRecord | None = None, *, outcome: Outcome = Outcome.ANSWERED, gone: bool = False
) -> JudgedEpisode:
    """An episode with its record; with `gone`, its chain has aged out."""
    bus = MemoryBus(SUBJECTS)
    attempt = record.attempt if record is not None else 1
    if record is not None and not gone:
        subject = SUBJECTS.chain_record(of.episode, attempt, "net", 0)
        bus.store(SUBJECTS.episodes(SUBJECTS.shard(of.episode)), subject, encode(record))
    trajectory = msgspec.structs.replace(
        builders.trajectory(of, outcome=outcome, reward=None, attempt=attempt),
        answer=answer,
        network=record.summary if record is not None else None,
    )
    return JudgedEpisode(trajectory, Evidence(bus, SUBJECTS))
