"""What every role's key may do, written down by hand: rows are operations, and who may do each beside the administrator.

`docs/permissions.md` is this table; `python -m tests.support.bus.permissions` writes it. One test
tries every cell on a real server.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bus.access import Access
from bus.permissions import SERVING
from schemas.bus_config import BusConfig
from schemas.ids import RunName

CONFIG = BusConfig(run=RunName("r"), num_shards=2)
PAGE = Path(__file__).parents[3] / "docs" / "permissions.md"
ROLES = tuple(role for role in Access if role is not Access.ADMIN)
_F, _B, _P, _J, _T = Access.FEEDER, Access.BROWSER, Access.POLICY, Access.JUDGE, Access.TRAINER
_M, _C, _A, _R = Access.MONITOR, Access.CONSUMER, Access.ARCHIVER, Access.REPLAYER
_OUTSIDE = (_C, _A, _R)
_API = "$JS.API"


@dataclass(frozen=True)
class Operation:
    """One row: something that a client may try."""

    group: str
    what: str
    verb: Literal["publish", "subscribe"]
    subject: str
    allowed: frozenset[Access]


def _write(what: str, subject: str, *allowed: Access) -> Operation:
    return Operation("write", what, "publish", f"r.{subject}", frozenset(allowed))


def _ask(group: str, what: str, subject: str, *allowed: Access) -> Operation:
    return Operation(group, what, "publish", subject, frozenset(allowed))


def _hear(what: str, subject: str, *allowed: Access) -> Operation:
    return Operation("listen", what, "subscribe", subject, frozenset(allowed))


def _writes() -> Iterator[Operation]:
    yield _write("a chain's task", "ep.1.e.task", _F, _R)
    yield _write("a chain's start", "ep.1.e.1.start.0", _B, _R)
    yield _write("an observation", "ep.1.e.1.obs.0", _B, _R)
    yield _write("an action", "ep.1.e.1.act.0", _P, _R)
    yield _write("the record of its traffic", "ep.1.e.1.net.0", _B, _R)
    yield _write("a chain's end", "ep.1.e.done", _F, _B, _R)
    yield _write("another record of a chain", "ep.1.e.1.note.0")
    yield _write("a task into the queue", "task.train.e", _F)
    yield _write("a wake-up for any policy worker", "step.train.any.e.1.0", _B)
    yield _write("an offer to one policy worker", "wake.w", _B)
    yield _write("the phase of a step", "phase.w", _B)
    yield _write("who has a step in hand", "live.1.e.1.held.0", _P)
    yield _write("an accepted action, past the chain", "live.1.e.1.act.0")
    yield _write("a trajectory", "trajectory.train.e", _F, _B, _R)
    yield _write("a judgement by the run's rubric", "judged.train.environment_v1.e", _J, _R)
    yield _write("a judgement by another rubric", "judged.train.other.e", _R)
    yield _write("what a judge's model answered", "call.environment_v1.e.q.0", _J)
    yield _write("what another rubric's model answered", "call.other.e.q.0")
    yield _write("what judges' calls came to", "spent", _J)
    yield _write("a blocked site", "blocked.example_org", _J)
    yield _write("a turn at a site", "turn.minute.example_org.direct.0", _B)
    yield _write("a checkpoint", "checkpoint.1", _T, _R)
    yield _write("a chunk of a checkpoint's file", "weights.abc.0-9", _T)
    yield _write("what a node of a training job does", "job.n", _T)
    yield _write("what a policy serves", "served.w", _P)
    yield _write("a cancellation", "cancel", _F)
    yield _write("the feeder's lease", "lease.feeder", _F)
    yield _write("what the feeder knows", "feeding.state", _F)
    yield _write("the archiver's lease", "lease.archiver", _A)
    yield _write("a consumer's position", "position.mine", _C, _A)
    yield _write("a dead letter of TASKS", "dead.r_TASKS", _B)
    yield _write("a dead letter of STEPS", "dead.r_STEPS", _P)
    yield _write("a dead letter of TRAJECTORIES", "dead.r_TRAJECTORIES", _J)
    yield _write("an error of a browser worker that nobody foresaw", "fault.browser.e.1", _B)
    yield _write("an error of a judge that nobody foresaw", "fault.judge.e.1", _J)
    for role in (_F, _B, _P, _J, _T, _A):
        yield _write(f"a heartbeat as {role}", f"heartbeat.{role}.w", role)
    yield _write("a heartbeat as server", "heartbeat.server.w")
    for role in SERVING:
        yield _ask("write", f"an order to a {role}", f"r.control.{role}.w")
    yield _ask("write", "a subject of another run", "other.task.train.e")
    yield _ask("write", "to the feeder's inbox", "_INBOX_feeder.x.1")
    yield _ask("write", "a notice in the server's name", "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.r_TASKS.browsers_train")


_READERS: dict[str, tuple[Access, ...]] = {
    "EPISODES1": (_F, _B, _P, _J, _T, _M, *_OUTSIDE),
    "TASKS": (_F, _M),
    "STEPS": (_M,),
    "TRAJECTORIES": (_F, _J, _M, *_OUTSIDE),
    "JUDGED": (_F, _J, _T, _M, *_OUTSIDE),
    "CALLS": (_J, _M, _C),
    "BLOCKLIST": (_F, _M),
    "TURNS": (_B, _M),
    "WEIGHTS": (_P, _T, _M),
    "CHECKPOINTS": (_F, _P, _T, _M, *_OUTSIDE),
    "SERVED": (_F, _P, _M),
    "HEARTBEATS": (_F, _P, _T, _M),
    "FEEDING": (_F, _B, _P, _J, _M),
    "LEASES": (_F, _M, _A),
    "POSITIONS": (_M, _C, _A),
    "ADVISORIES": (_P, _M),
}
_CONFIRMERS: dict[str, tuple[Access, ...]] = {
    "TASKS": (_B,),
    "STEPS": (_B, _P),
    "TRAJECTORIES": (_B,),
    "BLOCKLIST": (_J,),
    "HEARTBEATS": (_B, _J, _A),
    "ADVISORIES": (_F, _B, _J, _T, _A),
}
"""They write or pull there, and may ask whether the stream exists."""


def _reads() -> Iterator[Operation]:
    for stream, readers in _READERS.items():
        yield _ask("read", f"records of {stream}", f"{_API}.DIRECT.GET.r_{stream}", *readers)
        informed = (*readers, *_CONFIRMERS.get(stream, ()))
        yield _ask("read", f"how {stream} stands", f"{_API}.STREAM.INFO.r_{stream}", *informed)
    own = f"{_API}.DIRECT.GET.r_TRAJECTORIES.r.trajectory.train.e"
    yield _ask("read", "back a trajectory just written", own, _F, _B, _J, _M, *_OUTSIDE)
    judged = f"{_API}.DIRECT.GET.r_JUDGED.r.judged.train.environment_v1.e"
    yield _ask("read", "one judgement", judged, _F, _J, _T, _M, *_OUTSIDE)
    yield _ask("read", "records by the older request", f"{_API}.STREAM.MSG.GET.r_TASKS")
    yield _ask(
        "read",
        "a checkpoint by the older request, which the stream's leader answers",
        f"{_API}.STREAM.MSG.GET.r_CHECKPOINTS",
        _T,
    )
    yield _ask("read", "a consumer's position by the same request", f"{_API}.STREAM.MSG.GET.r_POSITIONS", _C, _A)
    yield _ask("read", "what the feeder knows by the same request", f"{_API}.STREAM.MSG.GET.r_FEEDING", _F)
    yield _ask("read", "a stream of another run", f"{_API}.DIRECT.GET.other_EPISODES0")


def _services() -> Iterator[Operation]:
    for verb in ("PING", "INFO", "STATS"):
        yield _ask("look", f"{verb} of all services", f"$SRV.{verb}", _M)
        yield _ask("look", f"{verb} of all judges", f"$SRV.{verb}.millrace-judge", _M)
        yield _ask("look", f"{verb} of one judge", f"$SRV.{verb}.millrace-judge.i", _M)
    yield _ask("look", "PING of another kind of service", "$SRV.PING.other")
    for listed in ("LIST", "NAMES"):
        yield _ask("look", f"STREAM.{listed}", f"{_API}.STREAM.{listed}", _M)
        yield _ask("look", f"CONSUMER.{listed} of a stream of the run", f"{_API}.CONSUMER.{listed}.r_TASKS", _M)
        yield _ask("look", f"CONSUMER.{listed} of another run's", f"{_API}.CONSUMER.{listed}.other_TASKS")


def _queues() -> Iterator[Operation]:
    shared = (("TASKS", "browsers_train", _B), ("STEPS", "policies_eval", _P), ("TRAJECTORIES", "judges_environment_v1", _J))
    for stream, queue, role in shared:
        yield _ask("work", f"pull from {queue}", f"{_API}.CONSUMER.MSG.NEXT.r_{stream}.{queue}", role)
        yield _ask("work", f"acknowledge a delivery of {queue}", f"$JS.ACK.r_{stream}.{queue}.1.1.1.1.0", role)
        yield _ask("work", f"how {queue} stands", f"{_API}.CONSUMER.INFO.r_{stream}.{queue}", role, _M)
    yield _ask("work", "pull from another rubric's judges", f"{_API}.CONSUMER.MSG.NEXT.r_TRAJECTORIES.judges_other")


def _administration() -> Iterator[Operation]:
    for verb in ("CREATE", "UPDATE", "DELETE", "PURGE", "SNAPSHOT", "RESTORE", "LEADER.STEPDOWN", "MSG.DELETE"):
        yield _ask("administer", f"STREAM.{verb}", f"{_API}.STREAM.{verb}.r_JUDGED")
    yield _ask("administer", "STREAM.PURGE of WEIGHTS", f"{_API}.STREAM.PURGE.r_WEIGHTS", _T)
    yield _ask("administer", "STREAM.PURGE of STEPS", f"{_API}.STREAM.PURGE.r_STEPS", _B)
    yield _ask("administer", "STREAM.PURGE of TURNS", f"{_API}.STREAM.PURGE.r_TURNS", _B)
    for stream in ("EPISODES1", "TASKS"):
        create = f"{_API}.CONSUMER.CREATE.r_{stream}"
        yield _ask("administer", f"a consumer of {stream}, pushing or pulling", create)
        yield _ask("administer", f"a named consumer of {stream}", f"{create}.mine")
        yield _ask("administer", f"a filtered consumer of {stream}", f"{create}.mine.r.ep.1.>")
    yield _ask("administer", "a durable consumer", f"{_API}.CONSUMER.DURABLE.CREATE.r_TASKS.mine")
    yield _ask("administer", "CONSUMER.DELETE", f"{_API}.CONSUMER.DELETE.r_TASKS.browsers_train")
    yield _ask("administer", "CONSUMER.PAUSE", f"{_API}.CONSUMER.PAUSE.r_TASKS.browsers_train")


def _listening() -> Iterator[Operation]:
    for role in ROLES:
        yield _hear(f"to the {role}'s inbox", f"_INBOX_{role}.>", role)
    yield _hear("to everybody's inbox", "_INBOX.>")
    yield _hear("to everything", ">")
    yield _hear("to everything of the run", "r.>", _M)
    yield _hear("to another run", "other.>")
    yield _hear("to accepted actions", "r.live.1.e.1.act.*", _B, _M)
    yield _hear("to cancellations", "r.cancel", _B, _M)
    yield _hear("to offers", "r.wake.w", _P, _M)
    yield _hear("to tasks", "r.task.>", _M)
    yield _hear("to the phases of steps", "r.phase.>", _M)
    yield _hear("to chains", "r.ep.1.>", _M, *_OUTSIDE)
    yield _hear("to trajectories", "r.trajectory.>", _F, _M, *_OUTSIDE)
    yield _hear("to judgements", "r.judged.train.>", _F, _T, _M, *_OUTSIDE)
    yield _hear("to checkpoints", "r.checkpoint.>", _F, _P, _M, *_OUTSIDE)
    yield _hear("to chunks of checkpoints' files", "r.weights.>", _M)
    yield _hear("to heartbeats", "r.heartbeat.>", _F, _P, _M)
    yield _hear("to what policies serve", "r.served.>", _F, _P, _M)
    yield _hear("to errors that nobody foresaw", "r.fault.>", _P, _M)
    yield _hear("to the feeder's lease", "r.lease.feeder", _F, _M)
    yield _hear("to positions", "r.position.>", _M, _C, _A)
    yield _hear("to orders to browsers", "r.control.browser.w", _B, _M)
    yield _hear("to questions to all services", "$SRV.PING", *SERVING)
    yield _hear("to questions to judges", "$SRV.INFO.millrace-judge.i", _J)
    yield _hear("to the server's requests", "$JS.API.>")
    yield _hear("to the server's system", "$SYS.>")


OPERATIONS = (*_writes(), *_reads(), *_services(), *_queues(), *_administration(), *_listening())


def markdown() -> str:
    lines = [
        "# Who may do what on the bus",
        "",
        "Every role of a run has a key of its own ([cluster.md](cluster.md)). `yes` is allowed; everything else is refused by",
        "the server. The administrator's key may do everything inside its run, and nothing in another. A test tries every",
        "cell on a real server; `python -m tests.support.bus.permissions` writes this page.",
    ]
    heading = f"| | {' | '.join(ROLES)} |"
    rule = "|---" * (len(ROLES) + 1) + "|"
    for group in dict.fromkeys(operation.group for operation in OPERATIONS):
        lines += ["", f"## {group.capitalize()}", "", heading, rule]
        for operation in OPERATIONS:
            if operation.group == group:
                cells = " | ".join("yes" if role in operation.allowed else "" for role in ROLES)
                lines.append(f"| {operation.what} | {cells} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(markdown())
