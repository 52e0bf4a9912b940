"""The exported schema is current, says what the encoder writes, and names the subjects that the code uses."""

import base64
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgpack
import msgspec
import pytest

from bus.subjects import Subjects, matches
from bus.topology import streams
from ops.cli import main
from ops.commands.schema import SUBJECTS, document, printed
from schemas.bus_config import BusConfig
from schemas.ids import EpisodeId, PolicyVersion, RunName, WorkerId
from schemas.messages import AnyMessage, Role, Split
from tests.fixtures.write_messages import FOLDER

NAMES = Subjects(RunName("millrace"), 1)
COMMITTED = Path(__file__).parents[2] / "docs/messages.schema.json"
FILES = sorted(FOLDER.glob("*.msgpack"))


def as_json(value: Any) -> Any:
    """What the schema speaks about: bytes as base64, everything else as it is."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {key: as_json(part) for key, part in value.items()}
        case list():
            return [as_json(part) for part in value]
        case _:
            return value


def fields_of(file: Path) -> dict[str, Any]:
    """Decoded as another language would."""
    fields: dict[str, Any] = msgpack.unpackb(file.read_bytes())
    return fields


def test_the_committed_schema_is_current() -> None:
    assert COMMITTED.read_bytes() == printed(document(NAMES)), "run `millrace schema > docs/messages.schema.json`"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_example_is_valid(file: Path) -> None:
    schema = msgspec.json.decode(COMMITTED.read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(as_json(fields_of(file)), schema, cls=jsonschema.Draft202012Validator)


def test_the_page_on_messages_shows_real_bytes() -> None:
    page = (COMMITTED.parent / "messages.md").read_text()
    block = page.partition("byte for byte:\n\n```text\n")[2].partition("```")[0]
    shown = bytes.fromhex("".join(line.partition("#")[0] for line in block.splitlines()))
    assert shown == (FOLDER / "start-1.msgpack").read_bytes()


def test_what_is_no_message_is_not_valid() -> None:
    schema = document(NAMES)
    task = as_json(fields_of(FOLDER / "task-1.msgpack"))
    for wrong in (task | {"type": "task/9"}, task | {"index": "7"}, {key: task[key] for key in task if key != "episode"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema, cls=jsonschema.Draft202012Validator)


def test_screenshots_are_raw_bytes_and_said_to_be() -> None:
    assert fields_of(FOLDER / "obs-1.msgpack")["screenshot"]["data"] == b"\xff\xd8\xff\xe0 screenshot"
    data = document(NAMES)["$defs"]["Screenshot"]["properties"]["data"]
    assert data["contentEncoding"] == "base64"
    assert "raw bytes" in document(NAMES)["description"]


def test_every_message_has_a_subject() -> None:
    assert {pattern.message for pattern in SUBJECTS} == set(AnyMessage.__args__)


def filter_of(pattern: str) -> str:
    return re.sub(r"<\w+>", "*", pattern)


@pytest.mark.parametrize("shards", [1, 3])
def test_subjects_are_those_of_the_streams(shards: int) -> None:
    names = Subjects(RunName("r"), shards)
    captured = {spec.name: spec.subjects for spec in streams(names, BusConfig(run=names.run, num_shards=shards))}
    for pattern in SUBJECTS:
        if pattern.stream is None:
            continue
        subject = pattern.of_run("r").replace("<shard>", "0")
        owners = captured[f"r_{pattern.stream}".replace("<shard>", "0")]
        assert any(matches(owner, filter_of(subject).replace("*", "x")) for owner in owners), pattern


def test_subjects_are_those_that_the_code_makes() -> None:
    episode, worker = EpisodeId("e"), WorkerId("w")
    made = [
        NAMES.task(Split.TRAIN, episode),
        NAMES.chain_task(episode),
        NAMES.chain_record(episode, 1, "start", 0),
        NAMES.chain_record(episode, 1, "obs", 2),
        NAMES.chain_record(episode, 1, "act", 2),
        NAMES.chain_record(episode, 1, "act", 2),
        NAMES.chain_record(episode, 1, "net", 0),
        NAMES.chain_done(episode),
        NAMES.live(episode, 1).replace(">", "act.2"),
        NAMES.live(episode, 1).replace(">", "act.2"),
        NAMES.held(episode, 1, 2),
        NAMES.step_any(Split.EVAL, episode, 1, 2),
        NAMES.wake(worker),
        NAMES.wake(worker),
        NAMES.phase(worker),
        NAMES.trajectory(Split.TRAIN, episode),
        NAMES.judgement(Split.TRAIN, "rubric", episode),
        NAMES.call("rubric_v1", EpisodeId("e"), "q", 0),
        NAMES.blocked("www.example.org"),
        NAMES.turn("minute", "www.example.org", "http://proxy.example:3128", "3"),
        NAMES.feeder_memory,
        NAMES.task_results(9),
        NAMES.spent,
        NAMES.checkpoint(PolicyVersion(3)),
        NAMES.weights("00" * 32, 0, 10),
        NAMES.heartbeat(Role.JUDGE, worker),
        NAMES.job_node("gpu-1"),
        NAMES.cancel,
        NAMES.served_by(worker),
        NAMES.position("mine"),
        NAMES.dead(NAMES.tasks),
        NAMES.resent(4),
        NAMES.fault(Role.POLICY, "e/1/2", 1),
    ]
    for pattern, subject in zip(SUBJECTS, made, strict=True):
        assert matches(filter_of(pattern.of_run("millrace")), subject), (pattern, subject)


def test_the_command_prints_it(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["schema", "--run", "mine", "--num-shards", "2"]) == 0
    found = msgspec.json.decode(capsysbinary.readouterr().out)["x-millrace"]
    assert {stream["name"] for stream in found["streams"]} >= {"mine_EPISODES0", "mine_EPISODES1", "mine_JUDGED"}


def test_a_run_that_cannot_be_named_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--run", "a.b"]) == 78
    assert "cannot name a stream" in capsys.readouterr().err
