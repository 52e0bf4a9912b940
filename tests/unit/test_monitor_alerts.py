"""Every alert by value, on both sides of its bound, and how conditions become alerts."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import msgspec
import pytest

from bus.ports import QueueDepth, Record, ReplicaState, StoreState, StreamState
from ops.monitor.alerts.alert import AlertBook, Condition, Key, Severity
from ops.monitor.alerts.look import Look
from ops.monitor.queues import QueueState
from ops.monitor.rules import conditions
from ops.monitor.state import Disk, MonitorState
from schemas.config import Config
from schemas.extensions import ALERTS
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import (
    AnyMessage,
    DeadLetter,
    EpisodeStart,
    Fault,
    Heartbeat,
    LetterResent,
    Role,
    ServedVersion,
    ServingState,
    Verdict,
)
from schemas.trainer_config import TrainerConfig
from tests.builders import checkpoint, judgement, task, trajectory

RULES = ALERTS.all()
NOW = 100_000.0
CONFIG = Config()
CONFIG = replace(
    CONFIG,
    env_config=replace(CONFIG.env_config, train_tasks_rollout_size=64),
    feeder_config=replace(CONFIG.feeder_config, num_iterations=10),
)
BOUNDS = CONFIG.monitor_config


def holding(of: MonitorState, config: Config = CONFIG, *, raised: frozenset[Key] = frozenset()) -> list[Condition]:
    return conditions(Look(state=of, config=config, now=NOW, raised=raised), RULES, pass_over=fail)


def state(*, began_at: float = NOW - 10_000.0) -> MonitorState:
    """Of a run whose server answers."""
    made = MonitorState(BOUNDS, began_at=began_at)
    made.server.answered(0.002, NOW)
    return made


def stored(of: MonitorState, message: AnyMessage, *, at: float = NOW, seq: int = 1) -> None:
    of.stored(Record("s", "x", seq, message, at), at)


def beat(
    of: MonitorState,
    role: Role,
    *,
    at: float = NOW,
    clock: float | None = None,
    state: str = "working",
    note: str = "",
    metrics: Mapping[str, float] = MappingProxyType({}),
) -> None:
    said = Heartbeat(
        role=role,
        worker=WorkerId(f"{role.value}-1"),
        state=state,
        at=at if clock is None else clock,
        note=note,
        metrics=dict(metrics),
    )
    stored(of, said, at=at)


def version(of: MonitorState, number: int, *, at: float, **metrics: float) -> None:
    stored(of, checkpoint(number, **metrics), at=at, seq=number)


def queue(
    of: MonitorState, role: Role, *depths: tuple[float, int], in_flight: int = 0, waiting: int = 0, name: str = "queue"
) -> None:
    made = of.queues[name] = QueueState(name, "stream", role)
    for at, pending in depths:
        made.note(QueueDepth(pending, in_flight, waiting, 0), oldest_s=None, now=at, window_s=BOUNDS.queue_growth_s)


def fail(error: Exception, item: str) -> None:
    raise AssertionError(item) from error


def found(of: MonitorState, kind: str, *, config: Config = CONFIG, raised: frozenset[Key] = frozenset()) -> list[Condition]:
    return [condition for condition in holding(of, config, raised=raised) if condition.key.kind == kind]


def judged(of: MonitorState, count: int, verdict: Verdict = Verdict.SUCCESS, *, unparsed: int = 0, steps: int = 10) -> None:
    for number in range(count):
        ended = msgspec.structs.replace(trajectory(task(f"t{number}"), num_steps=steps), num_unparsed=unparsed)
        reward = 1.0 if verdict is Verdict.SUCCESS else None
        stored(of, msgspec.structs.replace(judgement(ended, reward), verdict=verdict))


def test_a_healthy_run_has_no_alerts() -> None:
    of = state()
    for role in (Role.FEEDER, Role.BROWSER, Role.POLICY, Role.JUDGE, Role.TRAINER):
        beat(of, role)
    queue(of, Role.BROWSER, (NOW - 400, 60), (NOW, 60), in_flight=60)
    of.heard(Record("", "x", 0, task("live")), NOW)
    judged(of, 63)
    assert holding(of) == []


# roles ----------------------------------------------------------------------------------------------------------------


def test_work_that_nobody_takes() -> None:
    of = state()
    queue(of, Role.JUDGE, (NOW, 5))
    (condition,) = found(of, "role_missing")
    assert (condition.severity, condition.after_s) == (Severity.CRITICAL, BOUNDS.missing_s)
    assert condition.sentence == "work waits in queue (5), and no judge worker takes them (0 heard)"
    assert "millrace judge" in condition.remedy
    beat(of, Role.JUDGE, state="waiting")
    assert found(of, "role_missing")[0].sentence.endswith("no judge worker takes them (1 heard)")
    queue(of, Role.JUDGE, (NOW, 5), in_flight=1)
    assert not found(of, "role_missing")
    queue(of, Role.JUDGE, (NOW, 0))
    assert not found(of, "role_missing")


def test_a_worker_that_loads_is_not_missing() -> None:
    of = state()
    queue(of, Role.POLICY, (NOW, 5))
    beat(of, Role.POLICY, state="loading")
    assert not found(of, "role_missing")


def test_a_batch_without_a_trainer() -> None:
    of = state()
    judged(of, 63)
    assert not found(of, "role_missing")
    judged(of, 1)
    assert [condition.key.subject for condition in found(of, "role_missing")] == ["trainer"]
    rollout = replace(CONFIG, feeder_config=replace(CONFIG.feeder_config, mode="rollout"))
    assert not found(of, "role_missing", config=rollout)
    beat(of, Role.TRAINER)
    assert not found(of, "role_missing")


def test_a_batch_without_a_trainer_where_judgements_have_aged_out() -> None:
    """Nine versions consumed 576 episodes; the stream holds the last of them, and what has come since."""
    of = state()
    consumed = msgspec.structs.replace(checkpoint(9), judged_seq=600, num_trajectories=576)
    stored(of, consumed, seq=9)
    for number in range(64):
        assert not found(of, "role_missing")
        stored(of, judgement(trajectory(task(f"t{number}"))), seq=601 + number)
    assert found(of, "role_missing")[0].sentence.startswith("64 judged episodes wait")


@pytest.mark.parametrize(("role", "metric"), [(Role.BROWSER, "steps_taken"), (Role.POLICY, "answered"), (Role.JUDGE, "calls")])
def test_a_role_that_is_heard_and_gets_nothing_done(role: Role, metric: str) -> None:
    of = state()
    begun = NOW - BOUNDS.stalled_s - 1
    queue(of, role, (begun, 3), (NOW, 3), in_flight=1)
    beat(of, role, at=begun, metrics={metric: 7.0})
    beat(of, role, at=NOW, metrics={metric: 7.0})
    (condition,) = found(of, "role_stalled")
    assert condition.key.subject == role.value
    beat(of, role, at=NOW, metrics={metric: 8.0})
    assert not found(of, "role_stalled")


def test_a_role_without_work_does_not_stall() -> None:
    of = state()
    queue(of, Role.JUDGE, (NOW - 1000, 3), (NOW - 5, 0), (NOW, 3), in_flight=1)
    beat(of, Role.JUDGE, at=NOW - 1000, metrics={"calls": 7.0})
    beat(of, Role.JUDGE, at=NOW, metrics={"calls": 7.0})
    assert not found(of, "role_stalled")


def test_a_trainer_stalls_with_a_full_batch_only() -> None:
    for collected, stalled in ((63.0, False), (64.0, True)):
        of = state()
        beat(of, Role.TRAINER, at=NOW - BOUNDS.trainer_stalled_s - 1, metrics={"collected": collected, "batch": 64.0})
        beat(of, Role.TRAINER, at=NOW, metrics={"collected": collected, "batch": 64.0})
        assert bool(found(of, "role_stalled")) == stalled


def test_a_silent_worker_is_a_note() -> None:
    of = state()
    beat(of, Role.BROWSER, at=NOW - BOUNDS.worker_silent_s)
    assert not found(of, "worker_silent")
    beat(of, Role.BROWSER, at=NOW - BOUNDS.worker_silent_s - 1)
    (condition,) = found(of, "worker_silent")
    assert (condition.severity, condition.key.subject) == (Severity.NOTE, "browser-1")


def test_what_workers_say_of_themselves() -> None:
    of = state()
    beat(of, Role.JUDGE, state="paused", note="raise judge_config.max_calls")
    beat(of, Role.BROWSER, note="waits for room in test_EPISODES0")
    assert found(of, "worker_paused")[0].remedy == "raise judge_config.max_calls"
    assert found(of, "writer_waits")[0].key.subject == "browser-1"
    beat(of, Role.JUDGE)
    beat(of, Role.BROWSER)
    assert not found(of, "worker_paused") + found(of, "writer_waits")


@pytest.mark.parametrize(("skew_s", "told"), [(1.9, False), (2.1, True), (-1.9, False), (-2.1, True)])
def test_clocks_that_differ(skew_s: float, told: bool) -> None:
    of = state()
    beat(of, Role.BROWSER, clock=NOW + skew_s)
    assert bool(found(of, "clock_skew")) == told


def test_episodes_that_do_not_move() -> None:
    for waited_s, stuck in ((BOUNDS.stalled_s - 1, False), (BOUNDS.stalled_s + 1, True)):
        of = state()
        started = EpisodeStart(episode=task().episode, attempt=1, worker=WorkerId("browser-7"))
        of.heard(Record("", "x", 0, started), NOW - waited_s)
        assert bool(found(of, "episodes_stuck")) == stuck
    assert "at browser-7" in found(of, "episodes_stuck")[0].sentence


# flow -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("depths", "grows"),
    [
        ([(NOW - 300, 40), (NOW, 120)], True),
        ([(NOW - 300, 40), (NOW, 89)], False),  # by fewer than 50
        ([(NOW - 300, 90), (NOW, 160)], False),  # not to twice its length
        ([(NOW - 300, 40), (NOW - 100, 0), (NOW, 120)], False),  # a wave
        ([(NOW - 100, 0), (NOW, 500)], False),  # not seen for long enough
    ],
)
def test_queues_that_grow(depths: list[tuple[float, int]], grows: bool) -> None:
    of = state()
    queue(of, Role.JUDGE, *depths, in_flight=1)
    assert bool(found(of, "queue_growing")) == grows
    queue(of, Role.BROWSER, *depths, in_flight=1)
    assert not found(of, "queue_growing")


def test_a_version_that_is_late() -> None:
    for waited_s, late in ((290.0, False), (310.0, True)):
        of = state()
        for number in range(1, 5):
            version(of, number, at=NOW - waited_s - (4 - number) * 100.0)
        assert bool(found(of, "training_late")) == late
    done = replace(CONFIG, feeder_config=replace(CONFIG.feeder_config, num_iterations=4))
    assert not found(of, "training_late", config=done)


def test_a_feeder_that_waits_at_the_staleness_bound() -> None:
    of = state()
    beat(of, Role.FEEDER)
    (condition,) = found(of, "staleness_bound")
    assert condition.after_s == BOUNDS.staleness_wait_s
    of.heard(Record("", "x", 0, task()), NOW)
    assert not found(of, "staleness_bound")


def serves(of: MonitorState, worker: str, serving: ServingState, number: int, *, wanted: int | None = None) -> None:
    """A policy that is heard, and says so."""
    of.stored(Record("s", "x", 1, Heartbeat(role=Role.POLICY, worker=WorkerId(worker), state="working", at=NOW), NOW), NOW)
    said = ServedVersion(
        worker=WorkerId(worker),
        state=serving,
        version=PolicyVersion(number),
        at=NOW,
        wanted=None if wanted is None else PolicyVersion(wanted),
        reason="model.safetensors does not match its hash" if wanted is not None else "",
    )
    stored(of, said)


@pytest.mark.parametrize(
    ("others", "severity"), [(ServingState.SERVING, Severity.WARNING), (ServingState.UNABLE, Severity.CRITICAL)]
)
def test_a_policy_that_cannot_load_a_version_is_named_with_its_reason(others: ServingState, severity: Severity) -> None:
    of = state()
    serves(of, "policy-1", ServingState.UNABLE, 3, wanted=5)
    serves(of, "policy-2", others, 4, wanted=5 if others is ServingState.UNABLE else None)
    first = found(of, "policy_behind")[0]
    assert (first.key.subject, first.severity) == ("policy-1", severity)
    assert first.sentence == ("policy-1 cannot load version 5 and serves 3: model.safetensors does not match its hash")


@pytest.mark.parametrize("said", [ServingState.SERVING, ServingState.AWAY])
def test_a_policy_that_follows_or_has_left_is_no_alert(said: ServingState) -> None:
    of = state()
    serves(of, "policy-1", said, 3)
    assert not found(of, "policy_behind")


def test_a_feeder_that_waits_for_policies_does_not_blame_training() -> None:
    of = state()
    beat(of, Role.FEEDER)
    version(of, 4, at=NOW)
    serves(of, "policy-1", ServingState.UNABLE, 3, wanted=4)
    (condition,) = found(of, "staleness_bound")
    assert condition.sentence == "nothing is played: version 4 is announced, and policies still serve 3"
    assert "training" not in condition.remedy
    serves(of, "policy-1", ServingState.SERVING, 4)
    (condition,) = found(of, "staleness_bound")
    assert "training is the bottleneck" in condition.remedy


# quality --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "severity"),
    [(0.49, None), (0.51, Severity.WARNING), (1.01, Severity.CRITICAL), (math.nan, Severity.CRITICAL)],
)
@pytest.mark.parametrize("name", ["mismatch_k3", "mismatch_far"])
def test_the_mismatch(name: str, value: float, severity: Severity | None) -> None:
    """`value` times the bound."""
    of = state()
    figures = {"mismatch_k3": 0.0, "mismatch_far": 0.0} | {name: value * getattr(TrainerConfig(), f"max_{name}")}
    version(of, 1, at=NOW, mismatch=9.0, **figures)
    version(of, 2, at=NOW)
    conditions = found(of, "mismatch_high")
    assert [condition.severity for condition in conditions] == ([severity] if severity else [])
    assert all(f"trainer_config.max_{name}" in condition.sentence for condition in conditions)


def test_a_raised_alert_needs_a_wider_bound_to_go() -> None:
    of = state()
    version(of, 1, at=NOW, mismatch=0.0, mismatch_k3=0.0048)
    key = Key("mismatch_high")
    assert found(of, "mismatch_high", raised=frozenset({key}))
    version(of, 2, at=NOW, mismatch=0.0, mismatch_k3=0.0044)
    assert not found(of, "mismatch_high", raised=frozenset({key}))


@pytest.mark.parametrize(("unparsed", "low"), [(1, False), (3, True)])
def test_the_parse_rate(unparsed: int, low: bool) -> None:
    of = state()
    judged(of, BOUNDS.least_window - 1, unparsed=unparsed)
    assert not found(of, "parse_rate_low")
    judged(of, 1, unparsed=unparsed)
    assert bool(found(of, "parse_rate_low")) == low


@pytest.mark.parametrize(("errors", "told"), [(2, False), (3, True)])
def test_judgements_without_a_verdict(errors: int, told: bool) -> None:
    of = state()
    judged(of, 50 - errors)
    judged(of, errors, Verdict.ERROR)
    assert bool(found(of, "judge_errors")) == told


def test_records_that_a_worker_left_out() -> None:
    of = state()
    beat(of, Role.TRAINER)
    assert not found(of, "records_skipped")
    beating = Heartbeat(
        role=Role.TRAINER, worker=WorkerId("trainer-1"), state="working", at=NOW, skipped="record 7, r.checkpoint.9: why"
    )
    stored(of, beating)
    (condition,) = found(of, "records_skipped")
    assert "record 7, r.checkpoint.9: why" in condition.sentence


def test_dead_letters_until_they_are_sent_again() -> None:
    of = state()
    letter = DeadLetter(stream="test_TASKS", consumer="c", seq=1, subject="s", reason="corrupt")
    stored(of, letter, seq=3)
    stored(of, letter, seq=4)
    stored(of, LetterResent(letter_seq=4, stream="test_TASKS", seq=9, at=NOW), seq=5)
    (condition,) = found(of, "dead_letters")
    assert condition.sentence == "messages of test_TASKS that no worker could handle: 1"
    stored(of, LetterResent(letter_seq=3, stream="test_TASKS", seq=9, at=NOW), seq=6)
    assert not found(of, "dead_letters")


def test_dead_letters_until_they_have_aged_out() -> None:
    of = state()
    letter = DeadLetter(stream="test_TASKS", consumer="c", seq=1, subject="s", reason="corrupt")
    for seq in (3, 4):
        stored(of, letter, seq=seq)
    stored(of, LetterResent(letter_seq=2, stream="test_TASKS", seq=9, at=NOW), seq=5)
    for first_seq, number in ((1, 2), (3, 2), (4, 1), (6, 0)):
        of.streams["s"] = StreamState("s", 6 - first_seq, 0, 5, NOW, 0, 0, first_seq=first_seq)
        of.expire(NOW)
        assert len(of.letters) == number
        assert bool(found(of, "dead_letters")) == bool(number)
    assert not of._resent


def surprise(of: MonitorState, *, at: float, number: int = 1) -> None:
    met = Fault(
        role=Role.JUDGE,
        worker=WorkerId("judge-1"),
        item="rubric_v1/train/e1",
        number=number,
        error="KeyError: 'price'",
        place="judges/mine.py:12 in right_price",
        at=at,
    )
    stored(of, met, at=at, seq=number)


def test_what_nobody_foresaw_is_told_with_error_place_and_worker_for_a_while() -> None:
    of = state()
    surprise(of, at=NOW - 1, number=1)
    surprise(of, at=NOW, number=2)
    (condition,) = found(of, "unexpected_error")
    assert condition.key.subject == "judge-1"
    assert condition.sentence == (
        "judge-1 met what nobody foresaw at rubric_v1/train/e1: KeyError: 'price' (judges/mine.py:12 in right_price); "
        "it is the latest of 2"
    )
    of.expire(NOW + BOUNDS.unexpected_shown_s)
    assert found(of, "unexpected_error")
    of.expire(NOW + BOUNDS.unexpected_shown_s + 1)
    assert not found(of, "unexpected_error")


def test_what_a_monitor_could_not_take_in_is_told() -> None:
    of = state()
    of.num_passed_over = 2
    (condition,) = found(of, "unexpected_error")
    assert "passed over records that it could not take in: 2" in condition.sentence


# server ---------------------------------------------------------------------------------------------------------------


def test_a_server_that_does_not_answer_is_all_that_is_told() -> None:
    of = MonitorState(BOUNDS, began_at=NOW - BOUNDS.server_silent_s - 1)
    of.server.error = "no connection"
    beat(of, Role.BROWSER, at=NOW - 60)
    told = holding(of)
    assert [condition.key.kind for condition in told] == ["server_unreachable"]
    assert "no connection" in told[0].sentence
    of.server.answered(0.01, NOW - BOUNDS.server_silent_s)
    assert not found(of, "server_unreachable")


@pytest.mark.parametrize(("answer_s", "slow"), [(0.9, False), (1.1, True)])
def test_a_slow_server(answer_s: float, slow: bool) -> None:
    of = state()
    for _ in range(15):
        of.server.answered(answer_s, NOW)
    assert bool(found(of, "server_slow")) == slow


def said(**given: object) -> StreamState:
    whole = StreamState("test_JUDGED", 1, 0, 1, 0.0, 0, 0)
    return replace(whole, **given)  # type: ignore[arg-type]


Fill = Callable[[MonitorState, float], None]
FILLS: dict[str, Fill] = {
    "stream_full": lambda of, share: of.streams.update(s=said(num_bytes=int(share * 1000), max_bytes=1000)),
    "store": lambda of, share: setattr(of, "store", StoreState(int(share * 1000), 1000)),
    "disk": lambda of, share: setattr(of, "disk", Disk("/data", 1000, round((1 - share) * 1000))),
}


@pytest.mark.parametrize("what", FILLS)
@pytest.mark.parametrize(("share", "severity"), [(0.8, None), (0.9, Severity.WARNING), (0.95, Severity.CRITICAL)])
def test_room_that_runs_out(what: str, share: float, severity: Severity | None) -> None:
    of = state()
    FILLS[what](of, share)
    kind = what if what == "stream_full" else "disk_full"
    assert [condition.severity for condition in found(of, kind)] == ([severity] if severity else [])


def test_a_stream_without_limit_is_never_full() -> None:
    of = state()
    of.streams["s"] = said(num_bytes=10**15)
    of.store = StoreState(10**15, 0)
    assert holding(of) == []


def test_leaders_and_replicas() -> None:
    of = state()
    of.streams["s"] = said(leader="n1", replicas=(ReplicaState("n2", True, False, 1000),))
    assert holding(of) == []
    of.streams["s"] = said(leader="n1", replicas=(ReplicaState("n2", True, False, 1001),))
    assert "1,001 operations behind" in found(of, "replica_behind")[0].sentence
    of.streams["s"] = said(leader="", replicas=(ReplicaState("n2", False, True, 0),))
    assert [found(of, kind)[0].severity for kind in ("stream_without_leader", "replica_behind")] == [
        Severity.CRITICAL,
        Severity.WARNING,
    ]


# the book -------------------------------------------------------------------------------------------------------------


def condition(kind: str = "a", severity: Severity = Severity.WARNING, after_s: float | None = None) -> Condition:
    return Condition(key=Key(kind), severity=severity, sentence="s", remedy="r", after_s=after_s)


def test_an_alert_is_raised_when_it_has_held_and_stays_until_it_has_been_gone() -> None:
    book = AlertBook(raise_after_s=5.0, clear_after_s=30.0)
    assert book.update([condition()], 0.0) == []
    assert book.update([condition()], 4.9) == []
    assert [alert.since for alert in book.update([condition()], 5.0)] == [0.0]
    assert len(book.update([], 6.0)) == 1
    assert len(book.update([condition()], 30.0)) == 1
    assert len(book.update([], 31.0)) == 1
    assert [alert.since for alert in book.update([], 60.9)] == [0.0]
    assert book.update([], 61.0) == []
    assert book.update([condition()], 62.0) == []


def test_what_did_not_hold_for_long_enough_leaves_no_trace() -> None:
    book = AlertBook(raise_after_s=5.0, clear_after_s=30.0)
    for now in range(0, 60, 8):
        assert book.update([condition()] if now % 16 == 0 else [], float(now)) == []


def test_conditions_may_ask_for_more_time_and_none() -> None:
    book = AlertBook(raise_after_s=5.0, clear_after_s=30.0)
    assert [alert.condition.key.kind for alert in book.update([condition("now", after_s=0.0)], 0.0)] == ["now"]
    book.update([condition("later", after_s=20.0)], 0.0)
    assert "later" not in [alert.condition.key.kind for alert in book.update([condition("later", after_s=20.0)], 19.0)]
    assert "later" in [alert.condition.key.kind for alert in book.update([condition("later", after_s=20.0)], 20.0)]


def test_the_most_severe_come_first() -> None:
    book = AlertBook(0.0, 0.0, patient=False)
    given = [condition("n", Severity.NOTE), condition("w"), condition("c", Severity.CRITICAL, after_s=900.0)]
    assert [alert.condition.key.kind for alert in book.update(given, 0.0)] == ["c", "w", "n"]


# the page -------------------------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
KINDS = sorted(
    {kind for file in (ROOT / "ops/monitor/rules").glob("[!_]*.py") for kind in re.findall(r'Key\("(\w+)"', file.read_text())}
)


def test_every_kind_of_alert_has_a_section_that_its_link_leads_to() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    sections = {heading.replace(" ", "-") for heading in re.findall(r"^## (.+)$", page, re.MULTILINE)}
    assert len(KINDS) == 23
    assert {condition(kind).page.partition("#")[2] for kind in KINDS} == sections
