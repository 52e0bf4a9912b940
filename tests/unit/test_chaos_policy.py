"""What faults are drawn, whom they may hit, and how long a wait they explain."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest

from ops.audit.audit import Audit
from ops.audit.feed import Feed
from ops.audit.ledger import Ledger
from ops.audit.promises import check
from ops.audit.waits import Wait, Waiting
from ops.cli import main, parse
from ops.drills.bounds import PATIENCE_S, RESTART_S, bound_s, late
from ops.drills.failed import DrillFailed
from ops.drills.faults import Durations, FaultKind, Injected, faults
from ops.drills.own_run import Found, durations, role_of
from ops.drills.report import Report
from ops.drills.scaled_run import ScaledRun
from ops.drills.settings import DrillSettings
from ops.drills.slowness import Slowness
from ops.processes.supervisor import RoleState, RoleStatus
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError
from schemas.messages import Role

RUN = Path("/runs/mine")
VICTIMS = {FaultKind.KILL: ["browser-1", "policy-1"], FaultKind.EXPIRE: ["judge-1"], FaultKind.KILL_SERVER: []}
LEASES_S = dict.fromkeys(Waiting, 5.0)


def test_faults_are_a_function_of_the_seed() -> None:
    def drawn(seed: int) -> list[object]:
        return list(islice(faults(seed=seed, mean_interval_s=2.0, victims=VICTIMS, durations=Durations()), 50))

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_faults_come_at_their_mean_interval_and_hit_only_victims_there_are() -> None:
    drawn = list(islice(faults(seed=0, mean_interval_s=2.0, victims=VICTIMS, durations=Durations()), 4000))

    assert 1.9 < sum(fault.after_s for fault in drawn) / len(drawn) < 2.1
    assert {fault.kind for fault in drawn} == {FaultKind.KILL, FaultKind.EXPIRE}
    assert {fault.victim for fault in drawn if fault.kind is FaultKind.KILL} == {"browser-1", "policy-1"}
    assert all(7.0 <= fault.duration_s <= 9.0 for fault in drawn if fault.kind is FaultKind.EXPIRE)


def test_faults_without_victims_are_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match="nothing"):
        next(faults(seed=0, mean_interval_s=1.0, victims={FaultKind.KILL: []}, durations=Durations()))


def test_a_wrong_kind_is_named_with_the_right_ones() -> None:
    with pytest.raises(ConfigurationError, match="slow-disk"):
        FaultKind.named(["kil"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--days", "2", "--kinds", "kill"), "--kinds has no meaning with --days: leave it out"),
        (("--day", "3"), "--day has no meaning without --days: leave it out"),
        (
            ("--run-dir", "x", "--episodes", "5", "--set", "a=b"),
            "--episodes and --set have no meaning with --run-dir: leave them",
        ),
    ],
)
def test_what_has_no_meaning_for_a_drill_is_refused(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["chaos", *arguments])
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--days", "2", "--day", "3", "--set", "a=b", "--out", "x", "--seed", "1"),
        ("--run-dir", "x", "--duration", "9", "--kinds", "kill", "--fault-interval", "1", "--seed", "1"),
        ("--episodes", "5", "--servers", "3", "--limit", "9", "--browser", "playwright", "--duration", "9", "--kinds", "kill"),
    ],
)
def test_what_has_a_meaning_for_a_drill_is_taken(arguments: tuple[str, ...]) -> None:
    assert parse(["chaos", *arguments]).seed in (0, 1)


@pytest.mark.anyio
async def test_a_run_of_days_with_a_role_that_cannot_run_ends_with_its_reason() -> None:
    nothing = cast(Any, None)
    run = ScaledRun(nothing, nothing, nothing, nothing, nothing)
    run.ends.note(RoleStatus(name="feeder-1", role=Role.FEEDER, state=RoleState.WAITING, note="a moment"))
    assert not await run.until(lambda: False, limit_s=0.0)
    run.ends.note(RoleStatus(name="feeder-1", role=Role.FEEDER, state=RoleState.FATAL, note="tasks.jsonl is not there"))
    with pytest.raises(DrillFailed, match=r"feeder-1 cannot run: tasks\.jsonl is not there"):
        await run.until(lambda: False)


# waits ----------------------------------------------------------------------------------------------------------------


def wait(what: Waiting, seconds: float) -> Wait:
    return Wait(what=what, episode="e", began_s=1000.0, ended_s=1000.0 + seconds)


def fault(victim: str, at: float, *, kind: FaultKind = FaultKind.KILL, duration_s: float = 0.0) -> Injected:
    return Injected(at=at, kind=kind, victim=victim, pid=1, duration_s=duration_s)


def test_a_wait_without_a_fault_has_only_the_patience() -> None:
    assert bound_s(wait(Waiting.ANSWER, 9.0), [], lease_s=5.0) == PATIENCE_S
    assert [found.wait.seconds for found in late([wait(Waiting.ANSWER, 9.0)], [], leases_s=LEASES_S)] == [9.0]


@pytest.mark.parametrize(
    ("what", "during", "explained"),
    [
        (Waiting.TAKEOVER, fault("browser-2", 1000.0), True),
        (Waiting.TAKEOVER, fault("policy-1", 1000.0), False),
        (Waiting.ANSWER, fault("policy-1", 1001.0), True),
        (Waiting.ANSWER, fault("judge-1", 1001.0), False),
        (Waiting.JUDGEMENT, fault("judge-1", 999.0), True),
        (Waiting.JUDGEMENT, fault("server-1", 1001.0, kind=FaultKind.KILL_SERVER), True),
        (Waiting.JUDGEMENT, fault("judge-1", 900.0), False),
        (Waiting.JUDGEMENT, fault("judge-1", 1100.0), False),
        (Waiting.JUDGEMENT, fault("judge-1", 985.0, kind=FaultKind.EXPIRE, duration_s=9.0), True),
    ],
)
def test_only_a_fault_of_who_is_waited_for_explains_a_wait(what: Waiting, during: Injected, explained: bool) -> None:
    found = late([wait(what, 12.0)], [during], leases_s=LEASES_S)

    assert (not found) == explained


def test_what_processes_do_may_take_as_much_longer_as_the_machine_was_slower() -> None:
    killed = fault("browser-1", 1000.0)
    free, full = (bound_s(wait(Waiting.TAKEOVER, 9.0), [killed], lease_s=5.0, slowness=factor) for factor in (1.0, 4.0))
    assert (free, full) == (5.0 + PATIENCE_S + RESTART_S, 5.0 + 4 * (PATIENCE_S + RESTART_S)), "a lease is one of the clock"
    measured = Slowness()
    assert (measured.highest, measured.between(0.0, 1.0)) == (1.0, 1.0)
    measured.note(900.0, 1.0)
    measured.note(1010.0, 4.0)
    measured.note(1200.0, 1.0)
    waits = [wait(Waiting.ANSWER, 9.0), Wait(what=Waiting.ANSWER, episode="later", began_s=1200.0, ended_s=1209.0)]
    assert [found.wait.episode for found in late(waits, [], leases_s=LEASES_S, slowness=measured.between)] == ["later"]


# settings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("episodes", "batch"), [(5000, 100), (2000, 100), (300, 25), (50, 5), (7, 1)])
def test_a_drill_has_at_least_ten_versions_where_it_can(episodes: int, batch: int) -> None:
    settings = DrillSettings(folder=Path("x"), num_episodes=episodes)

    assert settings.batch == batch
    assert settings.batch * settings.num_iterations == episodes


@pytest.mark.parametrize("browser", ["simulated", "playwright"])
@pytest.mark.parametrize("num_servers", [1, 3])
def test_every_drill_has_a_valid_configuration(browser: str, num_servers: int) -> None:
    settings = DrillSettings(folder=Path("x"), num_servers=num_servers, browser=browser)  # type: ignore[arg-type]
    config = settings.config()

    assert config.browser_config.engine == browser
    assert config.bus_config.replicas == num_servers
    assert max(config.bus_config.task_ack_wait_s, config.bus_config.judge_ack_wait_s) < Durations().expire[0]


# a person's own run ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cmdline", "found"),
    [
        ("python -P -m ops.cli browser --run-dir /runs/mine --name b1", "b1"),
        ("python -P -m ops.cli browser --run-dir=/runs/mine", "browser-7"),
        ("python /env/bin/millrace judge --run-dir mine --name j", "j"),
        ("python -P -m ops.cli browser mine --name b1", "b1"),
        ("python -P -m ops.cli browser ~env_config.x --name b1 env_config.server_size=8 --config mine.yaml /runs/mine", "b1"),
        ("python -P -m ops.cli browser --run-dir /runs/other --name b1", None),
        ("python -P -m ops.cli browser /runs/other --name b1", None),
        ("python -I -S /x/guard.py --grace 8 -- python -m ops.cli browser --run-dir /runs/mine", None),
        ("python -P -m ops.cli browser --config mine.yaml", None),
        ("python -P -m ops.cli browser", None),
        ("python -P -m ops.cli audit --run-dir /runs/mine", None),
        ("vim /runs/mine/config.yaml", None),
    ],
)
def test_only_workers_of_the_run_are_found(cmdline: str, found: str | None) -> None:
    process = role_of(cmdline.split(), "/runs", RUN, 7)

    assert process == (Found(name=found, pid=7) if found else None)


@pytest.mark.parametrize(
    ("written", "is_default"),
    [("", True), ("env_config.server_size=8 ~env_config.x", True), ("/runs/other", False), ("--config mine.yaml", False)],
)
def test_a_worker_is_of_the_default_run_only_where_it_names_none(written: str, is_default: bool) -> None:
    cmdline = f"python -P -m ops.cli browser {written} --name b1".split()

    process = role_of(cmdline, "/home/me", Path("/home/me/runs/quickstart"), 7)

    assert process == (Found(name="b1", pid=7) if is_default else None)


def test_a_stop_that_expires_outlasts_every_lease_of_the_run() -> None:
    assert durations(BusConfig(task_ack_wait_s=30.0, judge_ack_wait_s=60.0)).expire[0] > 60.0


def test_a_drill_proves_only_what_it_was_asked_for() -> None:
    """However sound the streams are: a run that is not whole, or whose queues were never looked at, is no proof."""
    findings = check(Ledger(), feed=Feed(rubric="r", batch=1))
    whole = Report(
        command="",
        seed=0,
        num_servers=1,
        audit=Audit(findings=findings, waits=()),
        faults=(),
        late=(),
        early_acknowledgements=(),
        num_looks=1,
        num_expected=0,
        versions_expected=0,
        leases_s=LEASES_S,
        num_restarts=0,
        duration_s=1.0,
        peak_memory_mib={},
        skipped={},
    )
    assert whole.holds
    assert not replace(whole, num_looks=0).holds
    for lacking, said in (
        (replace(whole, num_expected=5), "0 of 5 episodes were admitted"),
        (replace(whole, versions_expected=2), "0 of 2 versions were announced"),
    ):
        assert not lacking.holds
        assert lacking.as_json()["failure"] == said
