"""Declares each role's permissions: the subjects it writes, the streams it reads, the queues it works from, as values.

Every line has its reason in the worker's code; a role that is given more than it uses is a mistake here.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from bus.ports import WorkQueue
from bus.subjects import Subjects
from bus.topology import step_queue, streams, task_queue, trajectory_queue
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError
from schemas.messages import Split


class Access(enum.StrEnum):
    """Roles that have a key of their own in every run."""

    ADMIN = "admin"
    FEEDER = "feeder"
    BROWSER = "browser"
    POLICY = "policy"
    JUDGE = "judge"
    TRAINER = "trainer"
    MONITOR = "monitor"
    CONSUMER = "consumer"
    ARCHIVER = "archiver"
    REPLAYER = "replayer"

    @classmethod
    def named(cls, name: str) -> "Access":
        """Raises `ConfigurationError` for a name that is none of these."""
        try:
            return cls(name)
        except ValueError:
            raise ConfigurationError(f"there is no key for the role {name!r}: write one of {', '.join(cls)}") from None


SERVING = (Access.FEEDER, Access.BROWSER, Access.POLICY, Access.JUDGE, Access.TRAINER, Access.ARCHIVER)
"""Roles whose workers are micro services: everybody who may look finds them, only the administrator tells them anything."""
_DISCOVERY_VERBS = ("PING", "INFO", "STATS")


def service_name(role: str) -> str:
    """The name of a role's workers as a NATS micro service."""
    return f"millrace-{role}"


def discovery(name: str, instance: str) -> tuple[str, ...]:
    """The subjects on which all services, all instances of one, and one instance are asked."""
    return tuple(f"$SRV.{verb}{whom}" for verb in _DISCOVERY_VERBS for whom in ("", f".{name}", f".{name}.{instance}"))


@dataclass(frozen=True, slots=True)
class RolePermissions:
    """What a role does on the bus, in the bus's own terms."""

    writes: tuple[str, ...] = ()
    """Subjects, stored or not."""
    reads: tuple[str, ...] = ()
    """Streams whose stored records it reads."""
    tails: tuple[str, ...] = ()
    """Streams that it reads and is woken by as they grow."""
    works: tuple[WorkQueue, ...] = ()
    """Queues that it shares with its own kind."""
    hears: tuple[str, ...] = ()
    """Subjects that it listens to."""
    answers: tuple[str, ...] = ()
    """Subjects on which it is asked, and replies."""
    decides_by: tuple[str, ...] = ()
    """Streams whose leader it asks for the newest record, because what it does then cannot be taken back."""
    purges: tuple[str, ...] = ()
    """Streams from which it removes what it wrote."""
    inspects: bool = False
    """It asks which streams and queues there are, and how every queue stands."""


def role_permissions(names: Subjects, config: BusConfig, rubrics: Iterable[str]) -> dict[Access, RolePermissions]:
    """Of every role but the administrator, who may do everything inside the run. `rubrics`: those of the run's judges."""
    run = names.run
    rubrics = tuple(rubrics)
    chains = tuple(names.episodes(shard) for shard in range(names.num_shards))
    results = (names.trajectories, names.judged, names.checkpoints)
    admitted, done, trajectory = f"{run}.ep.*.*.task", f"{run}.ep.*.*.done", f"{run}.trajectory.*.*"
    start, observed, acted, sent = (f"{run}.ep.*.*.*.{kind}.*" for kind in ("start", "obs", "act", "net"))
    position, checkpoint = f"{run}.position.*", f"{run}.checkpoint.*"

    def presence(role: Access) -> tuple[str, ...]:
        """Of a worker, whatever it does: how it stands, and the errors it met that nobody foresaw."""
        return f"{run}.heartbeat.{role}.*", f"{run}.fault.{role}.*.*"

    def asked(role: Access) -> tuple[str, ...]:
        return (f"{run}.control.{role}.*", *discovery(service_name(role), "*"))

    return {
        Access.FEEDER: RolePermissions(
            writes=(
                *presence(Access.FEEDER),
                admitted,
                done,
                f"{run}.task.*.*",
                trajectory,
                names.cancel,
                names.lease("feeder"),
                f"{run}.feeding.>",
            ),
            reads=(*chains, names.tasks, names.leases, names.feeding),
            tails=(*results, names.served, names.heartbeats, names.blocklist),
            decides_by=(names.feeding,),
            hears=(names.lease("feeder"),),
            answers=asked(Access.FEEDER),
        ),
        Access.BROWSER: RolePermissions(
            writes=(
                *presence(Access.BROWSER),
                start,
                observed,
                sent,
                done,
                *(f"{run}.step.{split.value}.any.>" for split in Split),
                f"{run}.wake.*",
                f"{run}.phase.*",
                trajectory,
                names.dead(names.tasks),
                f"{run}.turn.*.*.*.*",
            ),
            reads=(*chains, names.turns, names.feeding),
            works=tuple(task_queue(names, config, split) for split in Split),
            purges=(names.steps, names.turns),
            hears=(f"{run}.live.>", names.cancel),
            answers=asked(Access.BROWSER),
        ),
        Access.POLICY: RolePermissions(
            writes=(*presence(Access.POLICY), f"{run}.served.*", acted, f"{run}.live.*.*.*.held.*", names.dead(names.steps)),
            reads=(*chains, names.weight_chunks, names.feeding),
            tails=(names.checkpoints, names.served, names.heartbeats, names.advisories),
            works=tuple(step_queue(names, config, split) for split in Split),
            answers=(f"{run}.wake.*", *asked(Access.POLICY)),
        ),
        Access.JUDGE: RolePermissions(
            writes=(
                *presence(Access.JUDGE),
                *(f"{run}.judged.*.{rubric}.*" for rubric in rubrics),
                *(f"{run}.call.{rubric}.*.*.*" for rubric in rubrics),
                f"{run}.blocked.*",
                names.spent,
                names.dead(names.trajectories),
            ),
            reads=(*chains, names.trajectories, names.judged, names.feeding),
            tails=(names.calls,),
            works=tuple(trajectory_queue(names, config, rubric) for rubric in rubrics),
            answers=asked(Access.JUDGE),
        ),
        Access.TRAINER: RolePermissions(
            writes=(*presence(Access.TRAINER), checkpoint, f"{run}.weights.*.*", f"{run}.job.*"),
            reads=(*chains, names.checkpoints, names.weight_chunks, names.heartbeats),
            tails=(names.judged,),
            decides_by=(names.checkpoints,),
            purges=(names.weight_chunks,),
            answers=asked(Access.TRAINER),
        ),
        Access.MONITOR: RolePermissions(
            writes=tuple(dict.fromkeys(subject for role in SERVING for subject in discovery(service_name(role), "*"))),
            tails=tuple(spec.name for spec in streams(names, config)),
            hears=(f"{run}.>",),
            inspects=True,
        ),
        Access.CONSUMER: RolePermissions(
            writes=(position,),
            tails=(*chains, *results, names.calls, names.positions),
            decides_by=(names.positions,),
        ),
        Access.ARCHIVER: RolePermissions(
            writes=(*presence(Access.ARCHIVER), position, names.lease("archiver")),
            reads=(names.leases,),
            tails=(*chains, *results, names.positions),
            decides_by=(names.positions,),
            hears=(names.lease("archiver"),),
            answers=asked(Access.ARCHIVER),
        ),
        Access.REPLAYER: RolePermissions(
            writes=(admitted, start, observed, acted, sent, done, trajectory, f"{run}.judged.*.*.*", checkpoint),
            tails=(*chains, *results),
        ),
    }
