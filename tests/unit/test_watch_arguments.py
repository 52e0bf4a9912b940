"""What the arguments of `millrace watch` mean, and what a record becomes as a line."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import msgspec
import pytest

from bus import BEGINNING, NEW, After, Item, Start
from bus.evidence import Evidence
from bus.memory import MemoryBus
from ops.cli import main
from ops.commands.watch import start_of, versions_of
from ops.console.record_lines import line, without_bytes
from ops.run.folder import RunFolder
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId
from schemas.messages import AnyMessage
from tests.builders import observation, task
from tests.contract.backends import SUBJECTS


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("beginning", BEGINNING),
        ("new", NEW),
        ("41", After(41)),
        ("10m", timedelta(minutes=10)),
        ("1.5h", timedelta(hours=1.5)),
        ("2026-01-31T12:00+00:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ],
)
def test_places_to_begin(text: str, start: Start) -> None:
    assert start_of(text, whole=False) == start


def test_without_a_place_it_is_what_is_new_or_everything_when_it_ends() -> None:
    assert start_of(None, whole=False) is NEW
    assert start_of(None, whole=True) is BEGINNING
    clock = start_of("2026-01-31T12:00", whole=True)
    assert isinstance(clock, datetime)
    assert clock.tzinfo is not None
    with pytest.raises(ConfigurationError, match="write beginning, new"):
        start_of("yesterday", whole=False)


def test_versions() -> None:
    assert versions_of("3") == range(3, 4)
    assert versions_of("3-5") == range(3, 6)
    with pytest.raises(ConfigurationError, match="as 3-7"):
        versions_of("newest")


def test_bytes_become_their_number() -> None:
    assert without_bytes({"a": [b"12", {"b": b""}], "c": 1}) == {"a": [{"num_bytes": 2}, {"b": {"num_bytes": 0}}], "c": 1}


def item_of(message: AnyMessage) -> Item[AnyMessage]:
    evidence = Evidence(MemoryBus(SUBJECTS), SUBJECTS)
    return Item(
        message=message, stream="s", subject="x", seq=1, time=datetime(2026, 1, 1, tzinfo=UTC), data=b"", evidence=evidence
    )


@pytest.mark.anyio
async def test_an_episode_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    seen = observation(task())
    folder = anyio.Path(tmp_path)
    assert (await line(item_of(seen), folder))["screenshots"] == [str(tmp_path / seen.episode / "1-0.jpg")]
    elsewhere = msgspec.structs.replace(seen, episode=EpisodeId("../../elsewhere"))
    with pytest.raises(ConfigurationError, match="episode"):
        await line(item_of(elsewhere), folder)


def test_a_filter_that_a_stream_does_not_have_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "checkpoints", "--split", "train", "--run-dir", str(tmp_path)]) == 78
    assert "only trajectories, judgements can" in capsys.readouterr().err


def test_a_folder_without_a_run_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--run-dir", str(tmp_path)]) == 78
    assert "holds no run" in capsys.readouterr().err
    assert not RunFolder(tmp_path).server.exists()
