"""Exports: what other tools read back is what the streams hold, and writing twice gives the same files."""

import io
import json
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from PIL import Image

from bus.codec import encode
from bus.memory import MemoryBus
from bus.subjects import Subjects
from ops.archive.archive_source import ArchiveSource
from ops.archive.episodes import EpisodeSource, StoredEpisode, StoredRecord
from ops.archive.exports.export import Exported, export
from ops.archive.exports.played import Selection, played
from ops.archive.stream_source import StreamSource
from schemas.bus_config import BusConfig
from schemas.context_config import ContextConfig
from schemas.errors import BusUnavailable, ConfigurationError
from schemas.extensions import EXPORTERS
from schemas.ids import RunName
from schemas.messages import Action, ActionKind, AnyMessage, Split
from schemas.model_config import ModelConfig
from tests import builders
from tests.support.runs import archive_world as world

pytestmark = pytest.mark.anyio
SUBJECTS = Subjects(RunName("test"), 2)
ENVIRONMENT = Selection(rubric="environment")


async def source() -> StreamSource:
    bus = MemoryBus(SUBJECTS, BusConfig(run=SUBJECTS.run, num_shards=2))
    await world.fill(bus, SUBJECTS)
    return StreamSource(bus, SUBJECTS)


async def exported(
    given: EpisodeSource, out: Path, format_name: str, selection: Selection = ENVIRONMENT, **options: Any
) -> Exported:
    return await export(
        given,
        out,
        format_name=format_name,
        selection=selection,
        context=options.pop("context", ContextConfig()),
        model=ModelConfig(),
        **options,
    )


@pytest.mark.parametrize("format_name", EXPORTERS.builtin)
async def test_exporting_twice_and_from_an_archive_gives_the_same_files(tmp_path: Path, format_name: str) -> None:
    given = await source()
    await exported(given, tmp_path / "once", format_name)
    await exported(given, tmp_path / "twice", format_name)
    archived = ArchiveSource(await world.archive(given.bus, SUBJECTS, tmp_path / "archive"))
    await exported(archived, tmp_path / "archived", format_name)
    files = world.files(tmp_path / "once")
    assert files
    assert world.files(tmp_path / "twice") == files
    assert world.files(tmp_path / "archived") == files


async def test_parquet_has_a_row_a_step_and_a_row_an_episode(tmp_path: Path) -> None:
    done = await exported(await source(), tmp_path / "out", "parquet")
    steps = pq.read_table(tmp_path / "out/steps.parquet").to_pylist()
    episodes = pq.read_table(tmp_path / "out/episodes.parquet").to_pylist()
    assert (len(episodes), len(steps)) == (done.num_episodes, done.num_steps) == (8, 19)
    taken_over = [row for row in steps if row["episode"] == "train-r0000-t1-m0"]
    assert [(row["attempt"], row["step"], row["version"]) for row in taken_over] == [(3, 0, 0), (3, 1, 1), (3, 2, 2)]
    first = taken_over[0]
    assert first["screenshot"] == world.shot(10).data
    assert json.loads(first["action"]) == {"kind": "click", "point": [100.0, 500.0]}
    assert (first["url"], first["response"], first["reward"]) == (
        "http://site/1/0",
        "Action: click 0 of train-r0000-t1-m0",
        1.0,
    )
    assert [row["changed_nothing"] for row in taken_over] == [False, True, False]
    outcomes = {row["episode"]: (row["outcome"], row["verdict"], row["reward"]) for row in episodes}
    assert outcomes["train-r0000-t2-m0"] == ("cancelled", "excluded", None)
    assert outcomes["train-r0000-t4-m0"] == ("failed", "excluded", None)
    assert outcomes["train-r0000-t6-m0"] == ("done", None, None)
    parts = {row["episode"]: (row["reward_parts"], row["blocked"]) for row in episodes}
    outcome, length = {"name": "outcome", "value": 1.0, "steps": []}, {"name": "length", "value": 0.0, "steps": [0.0] * 3}
    assert parts["train-r0000-t1-m0"] == ([outcome, length], False)
    assert parts["train-r0000-t2-m0"] == ([], True)
    assert parts["train-r0000-t6-m0"] == (None, None)
    assert [row["step_reward"] for row in taken_over] == [0.0, 0.0, 0.0]


async def test_a_selection_leaves_out_other_splits_and_what_was_worth_less(tmp_path: Path) -> None:
    given = await source()
    held_out = Selection(split=Split.EVAL, rubric="environment")
    assert (await exported(given, tmp_path / "eval", "parquet", held_out)).num_episodes == 2
    worth = Selection(min_reward=0.5, rubric="environment")
    await exported(given, tmp_path / "worth", "parquet", worth)
    assert set(pq.read_table(tmp_path / "worth/episodes.parquet")["reward"].to_pylist()) == {1.0}


async def test_whose_judgement_counts_has_to_be_said_where_there_are_several(tmp_path: Path) -> None:
    given = await source()
    with pytest.raises(ConfigurationError, match="judged under environment, strict-2: choose one with --rubric"):
        await exported(given, tmp_path / "out", "parquet", Selection())
    with pytest.raises(ConfigurationError, match="by strict there: write --rubric with one of environment, strict-2"):
        await exported(given, tmp_path / "out", "parquet", Selection(rubric="strict"))
    assert not (tmp_path / "out").exists()
    await exported(given, tmp_path / "out", "parquet", Selection(rubric="strict-2"))


@pytest.mark.parametrize("format_name", EXPORTERS.builtin)
async def test_what_is_not_whole_is_not_left_there(tmp_path: Path, format_name: str) -> None:
    class BreakingOff(StreamSource):
        async def episodes(self) -> AsyncIterator[StoredEpisode]:
            async for episode in super().episodes():
                yield episode
                raise BusUnavailable("gone")

    given = await source()
    with pytest.raises(BusUnavailable):
        await exported(BreakingOff(given.bus, given.subjects), tmp_path / "out", format_name)
    assert world.files(tmp_path) == {}


async def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="is there already"):
        await exported(await source(), tmp_path, "jsonl")


async def test_the_datasets_package_loads_the_folder_with_screenshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import datasets
    await exported(await source(), tmp_path / "out", "hf")
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert {name: len(split) for name, split in loaded.items()} == {"train": 11, "eval": 8}
    assert isinstance(loaded["train"].features["screenshot"], datasets.Image)
    row = loaded["train"][1]
    assert row["episode"] == "train-r0000-t1-m0"
    assert row["screenshot"].convert("RGB").tobytes() == Image.open(io.BytesIO(world.shot(10).data)).convert("RGB").tobytes()
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]
    assert row["prompt_screenshots"] == [0]
    raw = loaded["train"].cast_column("screenshot", datasets.Image(decode=False))[1]["screenshot"]
    assert raw["bytes"] == world.shot(10).data


async def test_sharegpt_is_the_prompt_as_the_policy_saw_it(tmp_path: Path) -> None:
    done = await exported(await source(), tmp_path / "out", "sharegpt")
    samples = json.loads((tmp_path / "out/sharegpt.json").read_text())
    assert len(samples) == done.num_steps == 13
    for sample in samples:
        turns = [message["role"] for message in sample["messages"]]
        assert turns == ["system", *["user", "assistant"] * (len(turns) // 2)]
        assert sum(message["content"].count("<image>") for message in sample["messages"]) == len(sample["images"])
    third = samples[2]
    assert third["messages"][-1] == {"role": "assistant", "content": "Action: click 2 of train-r0000-t1-m0"}
    assert "click button 1, then say < image> “done”" in third["messages"][1]["content"]
    screenshots = [(tmp_path / "out" / path).read_bytes() for path in third["images"]]
    assert screenshots == [world.shot(10).data, world.shot(11).data, world.shot(11).data]
    info = json.loads((tmp_path / "out/dataset_info.json").read_text())
    assert (tmp_path / "out" / info["millrace"]["file_name"]).exists()


@pytest.mark.parametrize(("format_name", "file"), [("parquet", "steps.parquet"), ("hf", "data/*.parquet")])
async def test_rows_have_the_prompt_that_sharegpt_has(tmp_path: Path, format_name: str, file: str) -> None:
    given = await source()
    await exported(given, tmp_path / "rows", format_name)
    await exported(given, tmp_path / "samples", "sharegpt")
    rows = [row for path in (tmp_path / "rows").glob(file) for row in pq.read_table(path).to_pylist()]
    samples = json.loads((tmp_path / "samples/sharegpt.json").read_text())
    turns = [[*row["prompt"], {"role": "assistant", "content": row["response"]}] for row in rows if row["prompt"]]
    assert len(samples) == 13
    assert all(sample["messages"] in turns for sample in samples)
    for row in rows:
        assert sum(message["content"].count("<image>") for message in row["prompt"]) == len(row["prompt_screenshots"])
        assert row["prompt_screenshots"][-1] == row["step"]


async def test_rows_of_other_settings_have_no_prompt(tmp_path: Path) -> None:
    await exported(await source(), tmp_path / "out", "parquet", context=ContextConfig(num_rounds=1))
    rows = pq.read_table(tmp_path / "out/steps.parquet").to_pylist()
    unknown = [row for row in rows if row["prompt"] is None]
    assert unknown
    assert len(unknown) < len(rows)
    assert {row["prompt_screenshots"] for row in unknown} == {None}


async def test_sharegpt_leaves_out_steps_that_changed_nothing_when_asked(tmp_path: Path) -> None:
    await exported(await source(), tmp_path / "out", "sharegpt", leave_out_unchanged=True)
    samples = json.loads((tmp_path / "out/sharegpt.json").read_text())
    answers = [sample["messages"][-1]["content"] for sample in samples]
    assert "Action: click 0 of train-r0000-t1-m0" in answers
    assert "Action: click 1 of train-r0000-t1-m0" not in answers


def test_an_answer_is_no_step_that_changed_nothing() -> None:
    of = builders.task()
    asked = msgspec.structs.replace(builders.step_request(of), further=(Action(kind=ActionKind.ANSWER),))
    same = msgspec.structs.replace(builders.observation(of, 1), same_screenshot=True)
    for answered, changed_nothing in ((asked, False), (builders.step_request(of), True)):
        records: dict[str, AnyMessage] = {"1.obs.0": builders.observation(of, 0), "1.act.0": answered, "1.obs.1": same}
        stored = tuple(StoredRecord(suffix, 0.0, encode(message)) for suffix, message in records.items())
        ended = builders.trajectory(of, num_steps=1, num_observations=2)
        (step,) = played(StoredEpisode(of.episode, ended, encode(ended), 0.0, stored), None).steps
        assert step.changed_nothing is changed_nothing


async def test_sharegpt_refuses_a_prompt_that_the_policy_did_not_see(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="give the run's own context_config"):
        await exported(await source(), tmp_path / "out", "sharegpt", context=ContextConfig(num_rounds=1))


async def test_json_lines_hold_every_field_and_paths_of_screenshots(tmp_path: Path) -> None:
    given = await source()
    await exported(given, tmp_path / "out", "jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out/episodes.jsonl").read_text().splitlines()]
    stored = [episode async for episode in given.episodes()]
    assert [line["trajectory"] for line in lines] == [
        json.loads(msgspec.json.encode(episode.trajectory)) for episode in stored
    ]
    taken_over = lines[1]
    assert (taken_over["judgement"]["verdict"], len(taken_over["steps"])) == ("success", 3)
    assert taken_over["steps"][2]["request"]["logprobs"] == [-0.5, -0.25, -0.125]
    shown = taken_over["steps"][0]["observation"]["screenshot"]
    assert (tmp_path / "out" / shown["path"]).read_bytes() == world.shot(10).data
    assert shown["media_type"] == "image/jpeg"
    assert taken_over["last_seen"]["step"] == 3
