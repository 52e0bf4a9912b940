"""Tracking with the real wandb (offline), real TensorBoard event files read back, and episodes sampled from real chains."""

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from wandb.errors import CommError

from bus.background import background
from bus.memory import MemoryBus
from ops.roles.shown_step import show_step
from schemas.config import Config
from schemas.ids import EpisodeId, PolicyVersion, RunName
from schemas.log_config import LogConfig
from schemas.messages import Checkpoint, Judgement, Observation, Split, StepRequest, Task
from tests import builders
from tests.builders import checkpoint
from tests.deadlines import HANGS_S
from tests.support.closed_port import closed_port
from tests.support.training.trainer_world import SUBJECTS, judge, play, train_task
from tests.support.training.wandb_files import history, run_records
from trainer.tracking import ShownEpisode, ShownStep
from trainer.tracking.evaluations import Evaluations
from trainer.tracking.follower import OpenBackend
from trainer.tracking.log import open_tracking
from trainer.tracking.tensorboard import TensorBoardFiles
from trainer.tracking.wandb_run import WandbRun

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
_JPEG = b"\xff\xd8"
_LOG = LogConfig(table_every=2, table_episodes=2)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which much else runs may take long to start what wandb runs beside us, and to write."""
    monkeypatch.setattr("trainer.tracking.log._CLOSE_S", HANGS_S)
    monkeypatch.setattr("trainer.tracking.wandb_run._INIT_TIMEOUT_S", HANGS_S)
    monkeypatch.setenv("WANDB__SERVICE_WAIT", str(HANGS_S))


async def batch(bus: MemoryBus) -> list[Judgement]:
    """Two judged episodes of two steps with screenshots."""
    for index, reward in ((0, 1.0), (1, 0.0)):
        await judge(bus, await play(bus, train_task(index), num_steps=2), reward)
    records = await bus.history(SUBJECTS.judged, SUBJECTS.judgements_by(builders.RUBRIC))
    return [record.message for record in records if isinstance(record.message, Judgement)]


async def two_lives(folder: Path, bus: MemoryBus, backends: dict[str, OpenBackend]) -> None:
    """A trainer that died with version 3 written and not announced, and the one that came after it."""
    judgements = await batch(bus)

    async def found(version: int) -> Checkpoint:
        return checkpoint(version, loss=1.0 / version)

    for announced, versions in ((0, (1, 2, 3)), (2, (3, 4))):
        async with open_tracking(
            folder, bus=bus, subjects=SUBJECTS, log=_LOG, backends=backends, show_step=show_step
        ) as tracking:
            await tracking.resume(announced, found)
            for version in versions:
                loss = 9.0 if announced == 0 and version == 3 else 1.0 / version
                await tracking.trained(version, {"loss": loss}, judgements)
            tracking.evaluated(versions[0], {"eval/success": 0.5})


def tensorboard_values(folder: Path, tag: str) -> list[tuple[int, float]]:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0})
    events.Reload()
    return [(event.step, round(event.value, 4)) for event in events.Scalars(tag)]


async def test_tensorboard_has_no_step_twice_after_a_restart(tmp_path: Path) -> None:
    files = tmp_path / "tensorboard"
    await two_lives(tmp_path, MemoryBus(SUBJECTS), {"tensorboard": partial(TensorBoardFiles, files)})
    assert tensorboard_values(files, "train/loss") == [(1, 1.0), (2, 0.5), (3, 0.3333), (4, 0.25)]
    events = EventAccumulator(str(files), size_guidance={"images": 0, "tensors": 0})
    events.Reload()
    images = events.Tags()["images"]
    assert sorted(images) == [f"episode {number}/step {step}" for number in range(2) for step in range(2)]
    assert [image.step for image in events.Images(images[0])] == [2, 4]
    shown = events.Images(images[0])[0]
    assert shown.width == 244
    assert shown.encoded_image_string.startswith(_JPEG)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["version"] for line in lines if "loss" in line] == [1, 2, 3, 4]


async def test_wandb_offline_continues_one_run_with_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_API_KEY", "WANDB_DATA_DIR", "WANDB_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    log = LogConfig(run_name="my run", project_name="web", entity_name="team")
    opened: OpenBackend = lambda _: WandbRun(tmp_path, RunName("bus-run"), log, {"seed": 7})  # noqa: E731
    await two_lives(tmp_path, MemoryBus(SUBJECTS), {"wandb": opened})
    rows = history(tmp_path)
    losses = [(row["version"], row["loss"]) for row in rows if "loss" in row]
    assert losses == [(1, 1.0), (2, 0.5), (3, 9.0), (3, 1.0 / 3), (4, 0.25)], "the last of a version counts"
    assert [(row["version"], row["eval/success"]) for row in rows if "eval/success" in row] == [(1, 0.5), (3, 0.5)]
    tables: list[Any] = [row for row in rows if any(str(key).startswith("samples") for key in row)]
    assert [row["version"] for row in tables] == [2, 4]
    runs: list[Any] = run_records(tmp_path)
    assert {(run.run_id, run.display_name, run.project, run.entity) for run in runs} == {("my-run", "my run", "web", "team")}
    assert any(item.key == "seed" and item.value_json == "7" for item in runs[0].config.update)
    stored = [path for path in (tmp_path / "wandb/data").rglob("*") if path.is_file()]
    screenshots = [path for path in stored if path.read_bytes().startswith(_JPEG)]
    assert len(screenshots) >= 4, "one for each step of a table, kept with the run"


def sampled_episode(screenshot: bytes) -> ShownEpisode:
    return ShownEpisode(
        episode="e", instruction="i", website="w", difficulty=1, outcome="done", verdict="success", reward=1.0, reasoning="",
        versions=(1,), steps=(ShownStep(action="a", response="r", parsed=True, screenshot=screenshot),),
    )  # fmt: skip


def picture(kind: str) -> bytes:
    encoded = io.BytesIO()
    Image.effect_noise((32, 24), 50).convert("RGB").save(encoded, kind)
    return encoded.getvalue()


def test_wandb_gets_screenshots_as_they_are_and_its_copies_of_what_it_has_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WANDB_API_KEY", "WANDB_DATA_DIR", "WANDB_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    backend = WandbRun(tmp_path, RunName("r"), LogConfig(wandb_mode="offline"), {})
    uploaded = tmp_path / "wandb/cache/artifacts/obj/md5/0a/1b2c"
    uploaded.parent.mkdir(parents=True)
    uploaded.touch()
    screenshot = picture("JPEG")
    backend.show(1, [sampled_episode(screenshot)])
    backend.close()
    assert screenshot in {path.read_bytes() for path in (tmp_path / "wandb/data/artifacts/staging").iterdir()}
    assert not uploaded.exists()
    assert not [path for path in temporary.rglob("*") if path.suffix in (".jpg", ".png")]


def test_wandb_can_be_opened_anew_after_it_could_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.tracking.wandb_run._INIT_TIMEOUT_S", 1.0)
    monkeypatch.setattr("wandb.sdk.wandb_init._INIT_TIMEOUT_GRACE_SECONDS", HANGS_S)
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    with closed_port() as port:
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{port}")
        for _ in range(2):
            with pytest.raises(CommError):  # the second time too: not that its run is in use
                WandbRun(tmp_path, RunName("r"), LogConfig(), {})
    assert not list(tmp_path.glob("wandb/run-*"))


def test_disabled_wandb_writes_nothing(tmp_path: Path) -> None:
    backend = WandbRun(tmp_path, RunName("r"), LogConfig(wandb_mode="disabled"), {})
    backend.close()
    assert not list(tmp_path.rglob("*.wandb"))


async def test_sampled_episodes_are_a_page_of_the_run(tmp_path: Path) -> None:
    await two_lives(tmp_path, MemoryBus(SUBJECTS), {})
    pages = sorted(path.name for path in (tmp_path / "samples").iterdir())
    assert pages == ["v000002.html", "v000004.html"]
    page = (tmp_path / "samples/v000004.html").read_text()
    assert page.count("<img ") == 4
    assert page.index('class="episode success"') < page.index('class="episode failure"')


def damaged() -> bytes:
    encoded = io.BytesIO()
    Image.effect_noise((300, 300), 50).convert("RGB").save(encoded, "PNG")
    data = bytearray(encoded.getvalue())
    place = data.find(b"IDAT", data.find(b"IDAT") + 4)
    data[place : place + 4] = b"ID\x00T"
    return bytes(data)


def enormous() -> bytes:
    encoded = io.BytesIO()
    Image.new("1", (20000, 20000)).save(encoded, "PNG")
    return encoded.getvalue()


@pytest.mark.parametrize("picture", [damaged, enormous])
async def test_a_screenshot_that_cannot_be_opened_is_shown_as_none(tmp_path: Path, picture: Callable[[], bytes]) -> None:
    def with_it(number: int, seen: Observation, step: StepRequest) -> ShownStep:
        shot = msgspec.structs.replace(seen.screenshot, data=picture())
        return show_step(number, msgspec.structs.replace(seen, screenshot=shot), step)

    bus = MemoryBus(SUBJECTS)
    async with open_tracking(tmp_path, bus=bus, subjects=SUBJECTS, log=_LOG, show_step=with_it) as tracking:
        await tracking.trained(2, {"loss": 1.0}, await batch(bus))
    page = (tmp_path / "samples/v000002.html").read_text()
    assert page.count('class="episode') == 2


async def test_what_cannot_be_shown_stops_no_training(tmp_path: Path) -> None:
    def fails(number: int, seen: Observation, step: StepRequest) -> ShownStep:
        raise RuntimeError("a step that nobody foresaw")

    bus = MemoryBus(SUBJECTS)
    async with open_tracking(tmp_path, bus=bus, subjects=SUBJECTS, log=_LOG, show_step=fails) as tracking:
        await tracking.trained(2, {"loss": 1.0}, await batch(bus))
    assert not (tmp_path / "samples").exists()


def held_out(version: int, number: int, size: int = 2) -> Task:
    """One of a round's episodes; training had gone on when it was admitted."""
    return Task(
        run=builders.RUN,
        episode=EpisodeId(f"eval-r{version:04d}-t{number}-m0"),
        group=builders.task().group,
        task=builders.task().task,
        split=Split.EVAL,
        index=version * size + number,
        policy_version=PolicyVersion(version + 1),
        instruction="i",
        website="w",
        max_steps=1,
        difficulty=number + 1,
    )


async def test_evaluations_are_written_when_they_are_complete(tmp_path: Path) -> None:
    bus = MemoryBus(SUBJECTS)
    open_ = partial(open_tracking, tmp_path, bus=bus, subjects=SUBJECTS, log=_LOG)
    rounds = [PolicyVersion(0), PolicyVersion(5)]
    with anyio.fail_after(HANGS_S):
        async with open_() as tracking:
            evaluations = Evaluations(bus, SUBJECTS, tracking, rubric=builders.RUBRIC, versions=rounds, size=2)
            async with background(evaluations.run):
                for version, number, reward in ((0, 0, 1.0), (5, 0, 1.0), (0, 1, 0.0), (5, 1, 1.0)):
                    await judge(bus, builders.trajectory(held_out(version, number), num_steps=1), reward)
                await evaluations.complete()
        async with open_() as tracking:
            again = Evaluations(bus, SUBJECTS, tracking, rubric=builders.RUBRIC, versions=rounds, size=2)
            async with background(again.run):
                await again.complete()
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(line["version"], line["eval/success"], line["eval/episodes"]) for line in lines] == [(0, 0.5, 2), (5, 1.0, 2)]
    assert lines[0]["eval/success_difficulty_1"] == 1.0
    assert lines[0]["eval/success_difficulty_2"] == 0.0


def test_the_default_configuration_reports_nowhere() -> None:
    assert Config().algorithm_config.reporters == ()
