"""Prints every message as JSON Schema, with the streams and subjects of a run, for consumers in any language.

`docs/messages.schema.json` is what it prints for a run named `millrace`; a test keeps it current.
"""

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import msgspec

from bus.subjects import Subjects
from bus.topology import streams
from ops.commands.arguments import count
from ops.commands.execution import interruptible
from schemas.bus_config import BusConfig
from schemas.ids import RunName
from schemas.messages import (
    AnyMessage,
    Checkpoint,
    DeadLetter,
    EpisodeCancel,
    EpisodeStart,
    Fault,
    FeederMemory,
    Heartbeat,
    JobNode,
    JudgeCall,
    Judgement,
    JudgeSpending,
    LetterResent,
    NetworkRecord,
    Observation,
    Position,
    ServedVersion,
    SiteBlock,
    SiteTurn,
    StepHeld,
    StepPhase,
    StepRefusal,
    StepRequest,
    StepWake,
    Task,
    TaskResults,
    Trajectory,
    WeightChunk,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ENCODING = (
    "MessagePack. Every message is a map whose field `type` names its kind and version; fields with their default value are "
    "left out; what has contentEncoding base64 here is MessagePack's own bin, raw bytes without base64; unknown fields are to "
    "be ignored."
)


@dataclass(frozen=True, slots=True)
class SubjectPattern:
    """Subjects of one kind of message; `<name>` stands for one token, behind the run's own."""

    pattern: str
    message: type[Any]
    stream: str | None
    """Without the run's prefix; None: published, stored nowhere."""

    def of_run(self, run: str) -> str:
        return f"{run}.{self.pattern}"


SUBJECTS = (
    SubjectPattern("task.<split>.<episode>", Task, "TASKS"),
    SubjectPattern("ep.<shard>.<episode>.task", Task, "EPISODES<shard>"),
    SubjectPattern("ep.<shard>.<episode>.<attempt>.start.0", EpisodeStart, "EPISODES<shard>"),
    SubjectPattern("ep.<shard>.<episode>.<attempt>.obs.<step>", Observation, "EPISODES<shard>"),
    SubjectPattern("ep.<shard>.<episode>.<attempt>.act.<step>", StepRequest, "EPISODES<shard>"),
    SubjectPattern("ep.<shard>.<episode>.<attempt>.act.<step>", StepRefusal, "EPISODES<shard>"),
    SubjectPattern("ep.<shard>.<episode>.<attempt>.net.0", NetworkRecord, "EPISODES<shard>"),
    SubjectPattern("ep.<shard>.<episode>.done", Trajectory, "EPISODES<shard>"),
    SubjectPattern("live.<shard>.<episode>.<attempt>.act.<step>", StepRequest, None),
    SubjectPattern("live.<shard>.<episode>.<attempt>.act.<step>", StepRefusal, None),
    SubjectPattern("live.<shard>.<episode>.<attempt>.held.<step>", StepHeld, None),
    SubjectPattern("step.<split>.any.<episode>.<attempt>.<step>", StepWake, "STEPS"),
    SubjectPattern("wake.<worker>", StepWake, None),
    SubjectPattern("wake.<worker>", StepHeld, None),
    SubjectPattern("phase.<worker>", StepPhase, None),
    SubjectPattern("trajectory.<split>.<episode>", Trajectory, "TRAJECTORIES"),
    SubjectPattern("judged.<split>.<rubric>.<episode>", Judgement, "JUDGED"),
    SubjectPattern("call.<rubric>.<episode>.<question>.<answer>", JudgeCall, "CALLS"),
    SubjectPattern("blocked.<site>", SiteBlock, "BLOCKLIST"),
    SubjectPattern("turn.<kind>.<site>.<egress>.<slot>", SiteTurn, "TURNS"),
    SubjectPattern("feeding.state", FeederMemory, "FEEDING"),
    SubjectPattern("feeding.results.<part>", TaskResults, "FEEDING"),
    SubjectPattern("spent", JudgeSpending, "FEEDING"),
    SubjectPattern("checkpoint.<version>", Checkpoint, "CHECKPOINTS"),
    SubjectPattern("weights.<file>.<bytes>", WeightChunk, "WEIGHTS"),
    SubjectPattern("heartbeat.<role>.<worker>", Heartbeat, "HEARTBEATS"),
    SubjectPattern("job.<node>", JobNode, "HEARTBEATS"),
    SubjectPattern("cancel", EpisodeCancel, None),
    SubjectPattern("served.<worker>", ServedVersion, "SERVED"),
    SubjectPattern("position.<name>", Position, "POSITIONS"),
    SubjectPattern("dead.<stream>", DeadLetter, "ADVISORIES"),
    SubjectPattern("resent.<letter>", LetterResent, "ADVISORIES"),
    SubjectPattern("fault.<role>.<item>.<number>", Fault, "ADVISORIES"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run", dest="run_name", default="millrace", metavar="NAME", help="the run that is named (default: %(default)s)"
    )
    parser.add_argument(
        "--num-shards", type=count, default=1, metavar="N", help="of the run's EPISODES streams (default: %(default)s)"
    )


@interruptible
async def run(options: argparse.Namespace) -> int:
    """Raises `ConfigurationError` for a name that a run cannot have."""
    sys.stdout.buffer.write(printed(document(Subjects(RunName(options.run_name), options.num_shards))))
    return 0


def printed(document: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def document(names: Subjects) -> dict[str, Any]:
    """One schema that accepts any message, with what JSON Schema has no words for under `x-millrace`."""
    kinds = AnyMessage.__args__
    references, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    config = BusConfig(run=names.run, num_shards=names.num_shards)
    return {
        "$schema": DIALECT,
        "title": "Messages of Millrace",
        "description": _ENCODING,
        "anyOf": list(references),
        "$defs": definitions,
        "x-millrace": {
            "run": names.run,
            "shard": f"crc32 of the episode's name in UTF-8 (as zlib's), modulo {names.num_shards}",
            "streams": [
                {"name": spec.name, "subjects": spec.subjects, "retention": spec.retention} for spec in streams(names, config)
            ],
            "subjects": [_subject(pattern, names.run) for pattern in SUBJECTS],
        },
    }


def _subject(pattern: SubjectPattern, run: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "subject": pattern.of_run(run),
        "message": {"$ref": f"#/$defs/{pattern.message.__name__}"},
        "type": pattern.message.__struct_config__.tag,
    }
    if pattern.stream is not None:
        entry["stream"] = f"{run}_{pattern.stream}"
    return entry
