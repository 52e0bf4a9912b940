"""Metrics over real HTTP: what Prometheus' own parser reads, and who may read it."""

import datetime
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import anyio
import anyio.to_thread
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bus.background import background
from bus.ports import QueueDepth, Record, StoreState, StreamState
from bus.server.certificates import Authority
from ops.monitor.alerts.alert import Alert, Condition, Key, Severity
from ops.monitor.metrics import Exposition
from ops.monitor.queues import QueueState
from ops.monitor.state import Disk, MonitorState
from ops.monitor.worker_counters import COUNTERS
from ops.web.access import Access
from ops.web.application import application
from ops.web.metrics import metrics_routes
from ops.web.serving import Listening, serve
from schemas.config import Config
from schemas.ids import WorkerId
from schemas.messages import Heartbeat, Outcome, Role, Split
from tests.builders import checkpoint, judgement, task, trajectory
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio]
ROOT = Path(__file__).parents[2]
TOKEN = "a-token-of-enough-letters"


def state() -> MonitorState:
    made = MonitorState(Config().monitor_config, began_at=0.0)
    beat = Heartbeat(
        role=Role.BROWSER, worker=WorkerId("browser-1"), state="working", at=99.0, metrics={"slots": 8.0, "active": 5.0}
    )
    for message in (beat, judgement(trajectory(task()))):
        made.stored(Record("s", "x", 1, message, 99.0), 99.0)
    made.heard(Record("", "x", 0, task("live")), 99.0)
    queue = made.queues["judges_r"] = QueueState("judges_r", "s", Role.JUDGE)
    queue.note(QueueDepth(7, 3, 0, 0), oldest_s=12.0, now=99.0, window_s=300.0)
    made.streams["test_JUDGED"] = StreamState("test_JUDGED", 4, 1000, 4, 0.0, 0, 0)
    made.server.answered(0.002, 99.0)
    return made


def alerts() -> list[Alert]:
    condition = Condition(key=Key("disk_full", "disk"), severity=Severity.CRITICAL, sentence="s", remedy="r")
    return [Alert(condition=condition, since=1.0)]


def page() -> bytes:
    return Exposition("mine", lambda: (state(), alerts())).page()


def full_state() -> MonitorState:
    """With everything that a monitor can know."""
    made = state()
    trained, held_out = (judgement(trajectory(task("e", split=split), num_steps=2)) for split in Split)
    metrics = {"mismatch": 0.1, "staleness_mean": 0.5}
    blocked = msgspec.structs.replace(trajectory(task("b")), outcome=Outcome.BLOCKED)
    for message in (
        trained,
        held_out,
        checkpoint(1, **metrics),
        msgspec.structs.replace(judgement(blocked, None), blocked=True),
    ):
        made.stored(Record("s", "x", 1, message, 99.0), 99.0)
    for role, names in SAID.items():
        said = Heartbeat(
            role=role, worker=WorkerId(f"{role.value}-1"), state="working", at=99.0, metrics=dict.fromkeys(names, 1.0)
        )
        made.stored(Record("s", "x", 1, said, 99.0), 99.0)
    made.streams["test_JUDGED"] = StreamState("test_JUDGED", 4, 1000, 4, 0.0, 10_000, 0)
    made.store, made.disk = StoreState(1000, 0), Disk("/", 10, 5)
    return made


SAID = {
    Role.BROWSER: ("steps", "observe_s", "policy_s", "act_s", "active", "memory_mib"),
    Role.POLICY: ("answered", "tokens_per_s", "memory_mib"),
}
"""Some of what workers say."""


def samples() -> Iterator[tuple[str, dict[str, str], float]]:
    for family in text_string_to_metric_families(page().decode()):
        for sample in family.samples:
            yield sample.name, dict(sample.labels), sample.value


def test_prometheus_reads_what_the_state_holds() -> None:
    found = {(name, *sorted(labels.items())): value for name, labels, value in samples()}
    run = ("run", "mine")
    assert found["millrace_episodes", ("phase", "queued"), run] == 1
    assert found["millrace_judgements_total", run, ("verdict", "success")] == 1
    assert found["millrace_queue_pending", ("queue", "judges_r"), run] == 7
    assert found["millrace_queue_oldest_seconds", ("queue", "judges_r"), run] == 12
    assert found["millrace_stream_bytes", run, ("stream", "test_JUDGED")] == 1000
    assert found["millrace_server_answer_seconds", run] == 0.002
    assert found["millrace_alerts", ("kind", "disk_full"), run, ("severity", "critical")] == 1
    assert found["millrace_worker", ("name", "slots"), ("role", "browser"), run, ("worker", "browser-1")] == 8
    assert ("millrace_mismatch_nats", run) not in found


def test_labels_name_no_episode_task_or_site() -> None:
    allowed = {"run", "phase", "verdict", "queue", "stream", "kind", "severity", "role", "worker", "name"} | {
        "egress",
        "provider",
    }
    values = {value for _, labels, _ in samples() for value in labels.values()}
    assert {name for _, labels, _ in samples() for name in labels} <= allowed
    assert not any("train-r0000" in value or "demo" in value for value in values)


def test_what_only_rises_is_a_counter() -> None:
    families = {
        family.name: family
        for family in text_string_to_metric_families(Exposition("mine", lambda: (full_state(), [])).page().decode())
    }
    counted, now = families["millrace_worker_counted"], families["millrace_worker"]
    assert (counted.type, now.type) == ("counter", "gauge")
    assert {sample.labels["name"] for sample in counted.samples} == {"steps", "observe_s", "policy_s", "act_s", "answered"}
    assert {sample.labels["name"] for sample in now.samples} == {"active", "memory_mib", "tokens_per_s"}


def test_every_figure_that_rises_is_documented() -> None:
    page = (ROOT / "docs/monitor.md").read_text() + (ROOT / "docs/live_web.md").read_text()
    for role, names in COUNTERS.items():
        assert [name for name in names if f"`{name}`" not in page] == [], role


def test_every_expression_of_the_dashboard_is_answered() -> None:
    board = json.loads((ROOT / "ops/monitor/grafana_dashboard.json").read_text())
    found: dict[str, list[dict[str, str]]] = {}
    for family in text_string_to_metric_families(Exposition("mine", lambda: (full_state(), alerts())).page().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(expressions) >= len(board["panels"]) > 10
    assert (board["uid"], len({panel["id"] for panel in board["panels"]})) == ("millrace", len(board["panels"]))
    for expression in expressions:
        selectors = re.findall(r"(millrace_\w+)\{(.*?)\}", expression)
        assert len(selectors) == expression.count("millrace_"), f"{expression}: not of one run"
        for metric, matchers in selectors:
            wanted = dict(re.findall(r'(\w+)=~?"(.*?)"', matchers))
            assert wanted.pop("run") == "$run"
            series = found[metric]
            assert any(all(re.fullmatch(value, each[label]) for label, value in wanted.items()) for each in series), expression
            grouped = {label for by in re.findall(r"by \((.*?)\)", expression) for label in by.split(", ")}
            assert grouped <= series[0].keys(), expression


async def get(
    url: str, *, method: str = "GET", authorization: str = "", context: ssl.SSLContext | None = None
) -> tuple[int, str]:
    headers = {"authorization": authorization} if authorization else {}
    request = urllib.request.Request(url, method=method, headers=headers)

    def ask() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(request, timeout=HANGS_S, context=context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, ""

    return await anyio.to_thread.run_sync(ask)


@asynccontextmanager
async def scraped(listening: Listening, token: str = "") -> AsyncIterator[str]:
    """The address of metrics alone, as `millrace monitor --prometheus` serves them."""
    access = Access(token=token, tls=listening.certificate is not None)
    watch = SimpleNamespace(state=state(), alerts=alerts())
    app = application([], access, run="mine", remark="", others=metrics_routes(watch, "mine"))
    urls: list[str] = []
    listens = anyio.Event()

    def ready(url: str) -> None:
        urls.append(url)
        listens.set()

    async with background(lambda: serve(app, listening, ready=ready, ending=lambda: None)):
        with anyio.fail_after(HANGS_S):
            await listens.wait()
        yield f"{urls[0]}metrics"


async def test_a_scrape() -> None:
    async with scraped(Listening(port=0)) as url:
        assert await get(url) == (200, page().decode())
        assert await get(url, method="HEAD") == (200, "")
        assert (await get(f"{url}?x=1"))[0] == 200
        assert (await get(f"{url}/etc/passwd"))[0] == 404
        assert (await get(url, method="POST"))[0] == 405
        async with await anyio.connect_tcp("127.0.0.1", int(url.split(":")[2].partition("/")[0])):
            assert (await get(url))[0] == 200  # one that says nothing keeps nobody waiting


async def test_over_tls_with_a_token(tmp_path: Path) -> None:
    now = datetime.datetime.now(datetime.UTC)
    authority = tmp_path / "authority"
    authority.mkdir()
    Authority.of(authority, now).issue("localhost", tmp_path, now)
    listening = Listening(port=0, certificate=tmp_path / "server.pem", key=tmp_path / "server.key", name="localhost")
    context = ssl.create_default_context(cafile=authority / "ca.pem")
    async with scraped(listening, TOKEN) as url:
        for given in ("", "Bearer wrong", f"Basic {TOKEN}"):
            assert (await get(url, authorization=given, context=context))[0] == 401
        assert await get(url, authorization=f"bearer {TOKEN}", context=context) == (200, page().decode())
