"""Alerts about workers: roles that nobody fills, that stand still, fall silent, pause, or whose clocks differ."""

from collections.abc import Iterator

from ops.monitor.alerts.alert import Condition, Key
from ops.monitor.alerts.look import Look, critical, note, span, warning
from ops.monitor.cells import Phase
from ops.monitor.queues import QueueState
from ops.monitor.rules import alert
from ops.monitor.workers import summed
from schemas.messages import Role


@alert("roles")
def conditions(look: Look) -> Iterator[Condition]:
    yield from _missing(look)
    yield from _trainer_missing(look)
    yield from _stalled(look)
    yield from _single_workers(look)
    yield from _stuck_episodes(look)


def _missing(look: Look) -> Iterator[Condition]:
    """Work waits, and nobody of its role is heard or asks for it."""
    for queue in look.state.queues.values():
        depth = queue.depth
        if not depth.num_pending:
            continue
        workers = look.state.workers.of(queue.role, look.now)
        if workers and (depth.num_waiting or depth.num_in_flight or _is_starting(look, queue)):
            continue
        who = f"no {queue.role.value} worker takes them ({len(workers)} heard)"
        yield critical(
            Key("role_missing", queue.name),
            f"work waits in {queue.name} ({depth.num_pending:,}), and {who}",
            f"start a worker: millrace {queue.role.value}; if some run, read their logs",
            after_s=look.bounds.missing_s,
        )


def _is_starting(look: Look, queue: QueueState) -> bool:
    workers = look.state.workers.of(queue.role, look.now)
    return any(worker.state in ("starting", "loading", "paused") for worker in workers)


def _trainer_missing(look: Look) -> Iterator[Condition]:
    waiting, batch = look.state.run.num_waiting, look.config.env_config.train_tasks_rollout_size
    if look.trains and waiting >= batch and not look.state.workers.of(Role.TRAINER, look.now):
        yield critical(
            Key("role_missing", "trainer"),
            f"{waiting:,} judged episodes wait for training, and no trainer is heard",
            "start the trainer: millrace trainer; if it ended, its log says why",
            after_s=look.bounds.missing_s,
        )


def _stalled(look: Look) -> Iterator[Condition]:
    for role, waiting, limit_s in (
        (Role.BROWSER, _waits(look, Role.BROWSER), look.bounds.stalled_s),
        (Role.POLICY, _waits(look, Role.POLICY) or _undecided(look), look.bounds.stalled_s),
        (Role.JUDGE, _waits(look, Role.JUDGE), look.bounds.stalled_s),
        (Role.TRAINER, _full_batch(look), look.bounds.trainer_stalled_s),
    ):
        workers = [worker for worker in look.state.workers.of(role, look.now) if worker.state not in ("loading", "paused")]
        if not waiting or not workers:
            continue
        idle_s = look.now - max(worker.progressed_at for worker in workers)
        if idle_s > limit_s:
            yield critical(
                Key("role_stalled", role.value),
                f"work waits, and the {role.value} workers ({len(workers)} heard) have got nothing done for {span(idle_s)}",
                f"read the logs of the {role.value} workers; stopping one is safe, its work goes to another",
            )


def _waits(look: Look, role: Role) -> bool:
    """Whether this role's work has waited for as long as it may."""
    since = [queue.waiting_since for queue in look.state.queues.values() if queue.role is role]
    return any(began is not None and look.now - began > look.bounds.stalled_s for began in since)


def _undecided(look: Look) -> bool:
    deciding = (cell for cell in look.state.cells if cell.phase is Phase.DECIDING)
    return any(look.now - cell.since > look.bounds.stalled_s for cell in deciding)


def _full_batch(look: Look) -> bool:
    trainers = look.state.workers.of(Role.TRAINER, look.now)
    batch = summed(trainers, "batch")
    return look.trains and batch > 0 and summed(trainers, "collected") >= batch


def _single_workers(look: Look) -> Iterator[Condition]:
    for worker in look.state.workers.in_order():
        if look.state.workers.is_silent(worker, look.now):
            yield note(
                Key("worker_silent", worker.name),
                f"{worker.name} was last heard {span(look.now - worker.heard_at)} ago",
                "nothing, if it was stopped; otherwise look at its machine and its log: its work goes to others by itself",
            )
        elif worker.state == "paused":
            remedy = worker.note or "its log says why"
            yield critical(Key("worker_paused", worker.name), f"{worker.name} is paused", remedy)
        elif worker.note.startswith("waits for room in "):
            yield critical(
                Key("writer_waits", worker.name),
                f"{worker.name} {worker.note}: the stream is full",
                "raise its limit in bus_config (episodes_max_gb, results_max_gb) and run millrace streams, or free disk",
            )
        if abs(worker.skew_s) > look.bounds.most_clock_skew_s:
            ahead = "ahead of" if worker.skew_s > 0 else "behind"
            yield warning(
                Key("clock_skew", worker.name),
                f"the clock of {worker.name} is {abs(worker.skew_s):.1f} s {ahead} the server's",
                "synchronise the clocks of the machines (chrony, systemd-timesyncd)",
            )


def _stuck_episodes(look: Look) -> Iterator[Condition]:
    moving = (Phase.OPENING, Phase.ACTING, Phase.DECIDING)
    stuck = [cell for cell in look.state.cells if cell.phase in moving and look.now - cell.since > look.bounds.stalled_s]
    if stuck:
        longest = min(stuck, key=lambda cell: cell.since)
        yield warning(
            Key("episodes_stuck"),
            f"episodes that have not moved for {span(look.bounds.stalled_s)}: {len(stuck):,}; longest {longest.episode}, "
            f"{longest.phase.value} for {span(look.now - longest.since)} at {longest.worker or 'nobody'}",
            "look at that worker's log; an episode ends by itself when its time is over (env_config.task_timeout_minutes)",
        )
