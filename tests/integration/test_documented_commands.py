"""Every command and script of the documentation is run: on a simulated run here, or by the test that `_ELSEWHERE` names."""

import ast
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest

from bus.access import Access
from bus.jetstream import JetStreamBus
from bus.server import address_of, is_served
from bus.subjects import Subjects
from ops.config.loading import load_config
from ops.processes.guard import guard_command
from ops.processes.local_roles import LocalRoles, local_roles
from ops.processes.role_process import millrace_command, millrace_environment
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.simulation.material import ensure_task_file
from schemas.messages import Heartbeat, Role
from tests.deadlines import HANGS_S
from tests.support.texts.documented_commands import ROOT, Line, documented, scripts

pytestmark = [pytest.mark.anyio, pytest.mark.integration, pytest.mark.timeout(3600)]
_RUNS = ("quickstart", "shop")
"""Other names under which the pages speak of a run."""
_AT_ONCE = 4
_DONE, _NOT_YET, _CTRL_C = 0, 1, 130
"""Not yet: an audit of a run that goes on."""
_SEEN_S, _LONGEST_S = HANGS_S / 2, HANGS_S
_IN_ORDER = (
    "archive --once",
    "archive --run-dir",
    "archive --verify",
    "import",
    "blocklist add",
    "blocklist remove",
    "trainer",
)
_LAST = ("rejudge", "drain", "restart")
_WORKERS = {"feeder", "browser", "policy", "judge", "trainer"}
_GOES_ON = (
    "feeder_config.num_iterations=1000",
    "env_config.train_tasks_rollout_size=8",
    "env_config.server_size=4",
    "simulation_config.step_latency_ms=1500",
    "bus_config.heartbeats_max_age_s=900",  # who stands still is not gone
)
_NUM_FIRST = 40
"""Judgements before the first line is typed."""

_EVAL, _CALIBRATE = "test_eval.py::test_an_api_model_over_a_kill", "test_calibrate.py::test_against_another_rubric"
_PROTOCOL = "test_eval.py::test_a_protocol_over_the_real_engine_then_a_submission_without_playing"
_OFFLINE = "test_offline_training.py::test_a_kill_changes_nothing_and_no_browser_runs"
_REJUDGE = "test_rejudge.py::test_the_rubric_judge_asks_by_its_new_name_pauses_at_the_runs_limit_and_goes_on"
_LETTERS = "test_dead_letters.py::test_the_command"
_LAUNCH = "test_launching.py::test_a_node_is_given_its_own_keys_only_started_once_and_stopped_over_ssh"
_DRILL = "test_drill.py::test_a_run_on_one_server_keeps_its_promises_under_every_kind_of_fault"
_RUN = "test_run_here.py::test_a_run_in_one_command_and_on_from_a_kill"
_STREAMS = "test_cluster.py::test_the_command_creates_streams_changes_them_and_leaves_them_alone"
_LABELS = "test_viewer.py::test_a_person_labels_one_episode_after_the_other_without_being_told_the_verdict"
_HOUR = "test_first_hour.py::test_everything_on_the_page_does_what_it_says"
_SFT = "test_sft.py::test_a_warm_start_through_kills_ends_with_the_same_bytes"
_ELSEWHERE = {
    "config import": "test_config_import.py",
    "eval --api": _EVAL,
    "eval --compare": _EVAL,
    "eval 16": _EVAL,
    "eval openwebrl-webvoyager": _PROTOCOL,
    "eval openwebrl-online-mind2web": _PROTOCOL,
    "eval mine.yaml": _PROTOCOL,
    "eval 12": _EVAL,
    "eval models/mine": _EVAL,
    "replay runs/quickstart --train": _OFFLINE,
    "replay runs/quickstart --into runs/offline": _OFFLINE,
    "replay runs/quickstart --into runs/again --rejudge --train": _OFFLINE,
    "rejudge --run-dir runs/mine judge_config.judge=rubric_v1": _REJUDGE,
    "rejudge --run-dir runs/mine judge_config.judge=webjudge_v1": _REJUDGE,
    "rejudge --run-dir runs/mine judge_config.judge=agenttrek_v1": _REJUDGE,
    "rejudge --run-dir runs/shop judge_config.judge=rubric_v1": _REJUDGE,
    "rejudge --run-dir runs/again judge_config.judge=rubric_v1": _REJUDGE,
    "calibrate runs/mine --rubric": _CALIBRATE,
    "calibrate runs/shop --rubric": _CALIBRATE,
    "dead-letters show 12": _LETTERS,
    "dead-letters resend 12": _LETTERS,
    "export-model": "test_model_export.py",
    "import trajectories.jsonl --from openai": _SFT,
    "sft": _SFT,
    "view runs/sft": "test_viewer.py",
    "launch": _LAUNCH,
    "report runs/mine/archive --rubric rubric_v1": "test_report.py",
    "plan": "test_planning.py::test_the_command",
    "gpu-check": "test_gpu_check.py",
    "new mine": _HOUR,
    "quickstart": "test_closed_loop.py",
    "run config.yaml --run-dir": _HOUR,
    "run config.yaml": _HOUR,
    "run mine.yaml": "test_your_own_run.py",
    "run openwebrl": "test_published_recipes.py::test_openwebrl_runs_to_its_end_from_its_warm_start",
    "run update_online": _RUN,
    "tasks prepare": "test_task_preparation.py",
    "streams --run-dir runs/mine bus_config.episodes_max_gb=200": _STREAMS,
    "watch calls": "test_watch.py",
    "watch trajectories --from 2h --outcome failed": "test_watch.py",
    "watch judgements --run-dir runs/mine --verdict error": "test_watch.py",
    "restart --all --file": "benchmarks/three_nodes.py",
    "streams --config recipe.yaml": _STREAMS,
    "streams --file nodes.yaml": "test_moving_server.py",
    "browser --run-dir runs/mine browser_config.cdp_url": "test_remote_browser.py",
    "chaos": _DRILL,
    "monitor --run-dir runs/mine --prometheus 9464 --host": "test_monitor.py::test_the_page_is_served_with_metrics_beside_it",
    "view runs/mine --labels": _LABELS,
    "view runs/mine --host": "test_viewer.py::test_over_tls_the_cookie_is_secure",
}
"""What needs a model, an endpoint, other machines, a certificate or what this run has none of, by how the line begins."""


def _begins(line: Line, beginnings: tuple[str, ...]) -> str | None:
    return next((beginning for beginning in beginnings if str(line).split(": ", 1)[1].startswith(beginning)), None)


_LINES = list({line.words: line for line in documented("millrace")}.values())
_HERE = [line for line in _LINES if _begins(line, tuple(_ELSEWHERE)) is None]


@dataclass(frozen=True)
class Reader:
    """Someone who types the lines, each in a folder that holds a run that goes on and the files that the pages speak of."""

    folder: Path
    bus: JetStreamBus
    subjects: Subjects
    roles: LocalRoles

    async def types(self, line: Line) -> str:
        """Returns what is wrong with what became of it; empty: nothing."""
        words, number = line.words, _LINES.index(line)
        cwd = self._place(f"line-{number}", with_run=words[0] != "server")
        name = words[words.index("--name") + 1] if "--name" in words else f"{words[0]}-of-line-{number}"
        argv = millrace_command((*words, "--name", name) if words[0] in _WORKERS and "--name" not in words else words)
        environment = {**millrace_environment(), "BROWSER": "true"}  # what --open would start
        with anyio.fail_after(_LONGEST_S):
            if _goes_on(words):
                patient = tuple(guard_command(argv, grace_s=HANGS_S))  # a role's own would kill what a full machine ends late
                async with self._place_left_by(words[0]):
                    code, output = await self._follow(
                        patient, cwd, environment, partial(self._is_at_work, words[0], name, cwd)
                    )
                return "" if code in (_DONE, _CTRL_C) else f"exit {code}: {output}"
            done = await anyio.run_process(argv, check=False, cwd=cwd, env=environment)
            fine = done.returncode in ((_DONE, _NOT_YET) if words[0] == "audit" else (_DONE,))
            return "" if fine else f"exit {done.returncode}: {(done.stdout + done.stderr).decode()[-600:]}"

    async def runs(self, number: int, script: str) -> str:
        """Returns what is wrong with what became of it; empty: it did its work, or said something until it was stopped."""
        cwd = self._place(f"script-{number}", with_run=True)
        await (anyio.Path(cwd) / "mine.py").write_text(script)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        with anyio.fail_after(_LONGEST_S):
            code, output = await self._follow(
                (sys.executable, "mine.py"), cwd, environment, partial(self._is_at_work, "script", "", cwd)
            )
        return "" if code in (_DONE, _CTRL_C) else f"exit {code}: {output}"

    @asynccontextmanager
    async def _place_left_by(self, command: str) -> AsyncIterator[None]:
        """Of trainers a run has one: its own leaves for as long as another trains."""
        if command != Role.TRAINER.value:
            yield
            return
        await self.roles.stop(Role.TRAINER)
        yield
        self.roles.start(Role.TRAINER)

    def _place(self, name: str, *, with_run: bool) -> Path:
        """A folder with everything that the pages speak of; without the run, where the line begins one."""
        place = self.folder / name
        place.mkdir()
        for shared in ("shop.yaml", "models", "tasks", "webgym", *(("mine.yaml", "runs") if with_run else ())):
            (place / shared).symlink_to(self.folder / shared)
        if not with_run:
            (place / "mine.yaml").write_text("defaults: [simulation]\n")
        return place

    async def _follow(
        self, argv: tuple[str, ...], cwd: Path, environment: dict[str, str], is_at_work: Callable[[], Awaitable[bool]]
    ) -> tuple[int | None, str]:
        """Started, seen at work, and stopped with Ctrl-C. Returns exit code and output; no code: it was never at work."""
        output = cwd / "output"
        with output.open("wb") as file:
            async with await anyio.open_process(argv, cwd=cwd, env=environment, stdout=file, stderr=file) as process:
                at_work = False
                with anyio.move_on_after(_SEEN_S):
                    while not at_work and process.returncode is None:
                        await anyio.sleep(0.2)
                        at_work = await is_at_work()
                if process.returncode is None:
                    process.send_signal(signal.SIGINT)
                code = await process.wait()
        return code if at_work or code == _DONE else None, output.read_text()[-600:]

    async def _is_at_work(self, command: str, worker: str, cwd: Path) -> bool:
        match command:
            case "server":
                return _serves(cwd)
            case "archive":
                return any(beat.role is Role.ARCHIVER for beat in await self._heard())
            case _ if command in _WORKERS:
                return any(beat.worker == worker for beat in await self._heard())
            case _:
                return (cwd / "output").stat().st_size > 0

    async def _heard(self) -> list[Heartbeat]:
        beats = await self.bus.history(self.subjects.heartbeats, self.subjects.everything("heartbeat"))
        return [beat.message for beat in beats if isinstance(beat.message, Heartbeat)]


def _serves(cwd: Path) -> bool:
    return any(is_served(server) for server in cwd.glob("runs/*/server"))


def _goes_on(words: tuple[str, ...]) -> bool:
    """Whether the command stays until it is stopped."""
    match words[0]:
        case "watch":
            return "--no-follow" not in words
        case "monitor":
            return "--once" not in words
        case "archive":
            return not {"--once", "--verify"} & set(words)
        case "server" | "view":
            return True
        case _:
            return words[0] in _WORKERS


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    folder = RunFolder(tmp_path / "runs" / "mine")
    config = load_config("simulation", [f"save_path={folder.path}", f"data_path={folder.path}", *_GOES_ON])
    folder.create(config, needed_bytes=0)
    for name in ("train", "test"):
        ensure_task_file(folder.tasks / f"{name}.jsonl", num_tasks=60)
    async with local_roles(folder) as roles:
        await roles.serve(config)
        roles.start(Role.FEEDER, Role.POLICY, Role.JUDGE, Role.TRAINER)
        roles.guests(folder.config, prefix="cpu-1-").start(Role.BROWSER, count=2)
        _write_files(tmp_path, folder)
        subjects = subjects_of(config)
        async with join(folder, config, role="admin", name="reader") as bus:
            async with bus.tail(subjects.judged, subjects.judgements(None)) as judgements:
                for _ in range(_NUM_FIRST):
                    await anext(judgements)
            yield Reader(tmp_path, bus, subjects, roles)


def _write_files(beside: Path, folder: RunFolder) -> None:
    for name in _RUNS:
        (beside / "runs" / name).symlink_to("mine")
    shutil.copytree(ROOT / "tests/fixtures/webgym_tree", beside / "webgym/scripts/config/main")
    ensure_task_file(beside / "tasks" / "test.jsonl", num_tasks=5)
    (beside / "models" / "simulated").mkdir(parents=True)
    (beside / "models" / "simulated" / "config.json").write_text("{}")
    url = address_of(folder.server, role=Access.MONITOR).url
    bus = f"{{run: simulation, url: '{url}', keys: {folder.server}/keys/simulation}}"
    (beside / "mine.yaml").write_text(f"defaults: [simulation, _self_]\nbus_config: {bus}\n")
    (beside / "shop.yaml").write_text("defaults: [rollout_train]\n")


async def test_every_documented_command_does_its_work(reader: Reader) -> None:
    wrong: dict[str, str] = {}

    async def types(line: Line, places: anyio.CapacityLimiter) -> None:
        async with places:
            try:
                complaint = await reader.types(line)
            except TimeoutError:
                complaint = "it does not end"
            if complaint:
                wrong[f"millrace {line}"] = complaint

    first = [line for line in _HERE if _begins(line, _IN_ORDER)]
    last = [line for line in _HERE if _begins(line, _LAST)]
    for lines, at_once in ((first, 1), ([line for line in _HERE if line not in first + last], _AT_ONCE), (last, 1)):
        places = anyio.CapacityLimiter(at_once)
        async with anyio.create_task_group() as group:
            for line in lines:
                group.start_soon(types, line, places)
        for number, (page, script) in enumerate(scripts() if lines is first else ()):
            if complaint := await reader.runs(number, script):
                wrong[f"script of {page}"] = complaint
    if wrong:
        pytest.fail("\n".join(f"{what}\n    {complaint}" for what, complaint in wrong.items()))


@pytest.mark.parametrize("beginning", _ELSEWHERE)
def test_what_is_run_elsewhere_is_documented_and_its_test_is_there(beginning: str) -> None:
    assert any(_begins(line, (beginning,)) for line in _LINES), "no page has it any more"
    file, _, test = _ELSEWHERE[beginning].partition("::")
    path = ROOT / file if "/" in file else next((ROOT / "tests").glob(f"*/{file}"))
    functions = {node.name for node in ast.walk(ast.parse(path.read_text())) if hasattr(node, "name")}
    assert not test or test in functions
