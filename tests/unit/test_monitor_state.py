"""What a monitor folds beside episodes and alerts: rates, queues, workers; and the JSON that readers get."""

from itertools import count

import msgspec
import pytest

from bus.ports import QueueDepth, Record
from ops.monitor.alerts.alert import Alert
from ops.monitor.alerts.look import Look
from ops.monitor.queues import QueueState
from ops.monitor.rates import Rate
from ops.monitor.rules import conditions
from ops.monitor.snapshot import Json, Updates, merged, thinned
from ops.monitor.state import MonitorState
from schemas.config import Config
from schemas.extensions import ALERTS
from schemas.ids import WorkerId
from schemas.messages import AnyMessage, EpisodeStart, Heartbeat, Role, StepPhase
from tests.builders import checkpoint, judgement, task, trajectory

RULES = ALERTS.all()
CONFIG = Config()


_SEQS = count(1)


def state() -> MonitorState:
    return MonitorState(CONFIG.monitor_config, began_at=0.0)


def heard(of: MonitorState, message: AnyMessage, now: float) -> None:
    of.heard(Record("", "x", 0, message), now)


def stored(of: MonitorState, message: AnyMessage, at: float, *, seq: int = 0, now: float | None = None) -> None:
    of.stored(Record("s", "x", seq or next(_SEQS), message, at), at if now is None else now)


def test_a_rate_is_of_its_window() -> None:
    rate = Rate(60.0, began_at=0.0)
    assert rate.per_s(1.0) is None
    for second in range(120):
        rate.add(2, float(second))
    assert rate.per_s(120.0) == pytest.approx(2.0, rel=0.05)
    assert rate.per_s(150.0) == pytest.approx(1.0, rel=0.1)
    assert rate.per_s(300.0) == 0.0
    assert rate.total == 240


def test_a_rate_that_has_just_begun_counts_the_time_it_had() -> None:
    rate = Rate(60.0, began_at=100.0)
    rate.add(30, 105.0)
    assert rate.per_s(110.0) == pytest.approx(3.0)


def test_rates_of_a_run() -> None:
    of = state()
    for number in range(30):
        one = task(f"t{number}")
        heard(of, one, float(number))
        heard(of, StepPhase(episode=one.episode, attempt=1, step=0, phase="deciding", worker=WorkerId("b")), float(number))
        heard(of, StepPhase(episode=one.episode, attempt=1, step=0, phase="acting", worker=WorkerId("b")), float(number))
        heard(of, trajectory(one), float(number))
        heard(of, trajectory(one), float(number))  # a second `done` that the server refused
        stored(of, judgement(trajectory(one)), float(number))
    assert of.ended.per_s(30.0) == pytest.approx(1.0)
    assert of.steps.per_s(30.0) == pytest.approx(1.0)
    assert (of.ended.total, of.judged.total, of.run.num_episodes) == (30, 30, 30)


def test_versions_an_hour_and_staleness_are_those_of_checkpoints() -> None:
    of = state()
    before = of.versions_per_h
    assert before is None
    for number in range(4):
        metrics = {"staleness_mean": 0.5, "staleness_0": 3.0, "staleness_2": 1.0, "staleness_max": 2.0}
        stored(of, checkpoint(number, **metrics), 600.0 * number, seq=number + 1)
    assert (of.version, of.versions_per_h, of.staleness) == (3, 6.0, {0: 3.0, 2: 1.0})


def test_a_queue_knows_since_when_work_waits() -> None:
    queue = QueueState("q", "s", Role.JUDGE)
    for at, pending in ((0.0, 0), (10.0, 2), (20.0, 5), (30.0, 0), (40.0, 1)):
        queue.note(QueueDepth(pending, 0, 0, 0), oldest_s=None, now=at, window_s=30.0)
        expected = {0.0: None, 10.0: 10.0, 20.0: 10.0, 30.0: None, 40.0: 40.0}[at]
        assert queue.waiting_since == expected


def test_workers_are_forgotten_when_they_have_been_silent_for_long() -> None:
    of = state()
    stored(of, Heartbeat(role=Role.BROWSER, worker=WorkerId("b"), state="working", at=100.0), 100.0)
    (worker,) = of.workers.in_order()
    assert not of.workers.is_silent(worker, 110.0)
    assert of.workers.is_silent(worker, 110.1)
    of.expire(400.0)
    assert of.workers.in_order() == [worker]
    of.expire(400.1)
    assert of.workers.in_order() == []


def test_a_heartbeat_read_late_was_heard_when_the_server_heard_it() -> None:
    of = state()
    beat = Heartbeat(role=Role.BROWSER, worker=WorkerId("b"), state="working", at=88.0)
    stored(of, beat, 88.0, now=100.0)
    (worker,) = of.workers.in_order()
    assert (worker.heard_at, worker.skew_s) == (88.0, 0.0)
    stored(of, beat, 3000.0, now=100.0)  # the server's clock is ahead of ours
    assert of.workers.in_order()[0].heard_at == 100.0


def alerts(of: MonitorState, now: float) -> list[Alert]:
    def fail(error: Exception, item: str) -> None:
        raise AssertionError(item) from error

    held = conditions(Look(state=of, config=CONFIG, now=now), RULES, pass_over=fail)
    return [Alert(condition=condition, since=now) for condition in held]


def test_differences_add_up_to_the_whole() -> None:
    of, updates = state(), Updates()
    whole: Json = {}
    tasks = [task(f"t{number}") for number in range(5)]
    sizes = []
    for now in range(40):
        if now < 5:
            heard(of, tasks[now], float(now))
        elif now < 10:
            heard(of, EpisodeStart(episode=tasks[now - 5].episode, attempt=1, worker=WorkerId("b")), float(now))
        elif now == 12:
            stored(of, judgement(trajectory(tasks[0])), 12.0)
        of.expire(float(now))
        update = updates.next(of, alerts(of, float(now)), CONFIG, float(now))
        sizes.append(len(update["cells"]))
        whole = merged(whole, msgspec.json.decode(msgspec.json.encode(update)))
    fresh = merged({}, Updates().next(of, alerts(of, 39.0), CONFIG, 39.0))
    assert whole == msgspec.json.decode(msgspec.json.encode(fresh))
    assert sizes == [1] * 10 + [0, 0, 1] + [0] * 27
    assert len(whole["cells"]) == 4
    assert whole["sections"]["phases"] == {"opening": 4} | dict.fromkeys(
        ("queued", "deciding", "acting", "judging", "ended"), 0
    )


def test_nothing_new_is_a_short_update() -> None:
    of, updates = state(), Updates()
    heard(of, task(), 1.0)
    updates.next(of, [], CONFIG, 2.0)
    update = updates.next(of, [], CONFIG, 2.1)
    assert (update["cells"], update["gone"]) == ({}, [])
    assert set(update["sections"]) <= {"metrics"}


def test_long_curves_are_thinned_and_keep_their_end() -> None:
    assert list(thinned(range(5), 10)) == [0, 1, 2, 3, 4]
    short = thinned(range(1001), 100)
    assert len(short) <= 101
    assert (short[0], short[-1]) == (0, 1000)
