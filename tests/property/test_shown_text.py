"""Records with any code points in every text, as whoever holds a key may write them, are shown, printed, drawn, archived and
exported: nothing fails over them, nothing is lost of them, and nobody obeys them."""

import io
import json
import os
import re
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import anyio
import pyarrow.parquet as pq
from hypothesis import example, given, settings
from msgspec import to_builtins
from msgspec.structs import replace
from rich.table import Table as Drawn
from rich.text import Text

from bus import chain
from bus.blocklist import block
from bus.memory import MemoryBus
from bus.subjects import Subjects
from ops.analysis.report.report import Report, gather
from ops.analysis.report.reporting import title_of, write
from ops.analysis.report.sections import sections
from ops.analysis.report.terminal import show
from ops.archive.archive_source import ArchiveSource
from ops.archive.exports.export import export
from ops.archive.exports.played import Selection
from ops.archive.stream_source import StreamSource
from ops.console.json_lines import JsonLines
from ops.console.record_lines import without_bytes
from ops.console.terminal import Console
from ops.web.answers import json_answer
from ops.web.detail import detail_of
from ops.web.stream_store import StreamStore
from ops.web.token_text import TokenTexts
from schemas.bus_config import BusConfig
from schemas.context_config import ContextConfig
from schemas.extensions import EXPORTERS
from schemas.ids import WorkerId
from schemas.messages import Action, ActionKind, Element, Outcome, StageVerdict
from schemas.model_config import ModelConfig
from schemas.text import encodable
from tests import builders
from tests.support.runs import archive_world
from tests.support.texts.any_text import OBEYED, any_text

SUBJECTS = Subjects(builders.RUN)
RUBRIC = builders.RUBRIC
KILLER = "Save \ud83d\x00\x1b[2J\x9b1m\u202e\u200b[/]]]><b>{{sections}}\r\n\u2028"
COLOURS = re.compile("\x1b\\[[0-9;]*m")


async def filled(text: str) -> MemoryBus:
    """A run of one judged episode that says `text` wherever an episode says something."""
    bus = MemoryBus(SUBJECTS, BusConfig(run=builders.RUN), (RUBRIC,))
    of = replace(builders.task(), instruction=text, domain=text, website=f"https://{text}", reference_answer=text)
    await chain.admit(bus, SUBJECTS, of)
    owner = await chain.EpisodeChain.take(bus, SUBJECTS, of, WorkerId("browser"))
    assert isinstance(owner, chain.EpisodeChain)
    element = Element(id=1, tag=text, text=text, box=(0, 0, 1, 1))
    seen = replace(builders.observation(of), screenshot=archive_world.shot(1), url=text, title=text, error=text, hit=text)
    seen = replace(seen, changes=(text,), elements=(element,), accessibility_tree=text, page_text=text)
    action = Action(kind=ActionKind.ANSWER, text=text)
    step = replace(builders.step_request(of), action=action, response=text, thought=text, screenshots=(0,))
    owner.answered(await chain.answer(bus, SUBJECTS, await owner.observe(seen), step))
    trajectory = replace(
        builders.trajectory(of, outcome=Outcome.ANSWERED, num_observations=1, num_steps=1),
        answer=text,
        error=text,
        navigation_error=text,
        ended_at=1000.0,
    )
    await owner.finish(trajectory)
    await chain.publish_trajectory(bus, SUBJECTS, trajectory)
    stages = (StageVerdict(stage=text, passed=True, reasoning=text),)
    given = replace(builders.judgement(trajectory), stages=stages, error=text)
    await bus.append(SUBJECTS.judged, SUBJECTS.judgement(given.split, RUBRIC, given.episode), given)
    await block(bus, SUBJECTS, "shop.example", hours=1.0, reason=text)
    return bus


async def written(source: StreamSource, folder: Path) -> None:
    """Report, archive, and every export of streams and archive."""
    report = await gather(Report(source="s", run=builders.RUN, rubric=RUBRIC), source.episodes())
    await anyio.to_thread.run_sync(write, report, folder / "report")
    console = Console(file=io.StringIO(), width=200, force_terminal=True)
    with console.capture() as capture:
        show(title_of(report), *sections(report, top=8), console)
    (folder / "terminal").write_text(capture.get(), encoding="utf-8")
    archived = ArchiveSource(await archive_world.archive(source.bus, SUBJECTS, folder / "archive"))
    for name, held in (("streams", source), ("archived", archived)):
        for format_name in EXPORTERS.builtin:
            await export(
                held,
                folder / name / format_name,
                format_name=format_name,
                selection=Selection(),
                context=ContextConfig(),
                model=ModelConfig(),
            )


@example(KILLER)
@given(any_text)
@settings(max_examples=12)
def test_records_are_reported_archived_and_exported(text: str) -> None:
    async def prove(folder: Path) -> None:
        bus = await filled(text)
        (folder / "streams").mkdir()
        (folder / "archived").mkdir()
        await written(StreamSource(bus, SUBJECTS), folder)

    said = encodable(text)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        anyio.run(prove, folder)
        assert archive_world.files(folder / "streams") == archive_world.files(folder / "archived")
        (row,) = pq.read_table(folder / "streams/parquet/steps.parquet").to_pylist()
        assert (row["title"], row["response"], json.loads(row["action"])["text"] if said else "") == (said, said, said)
        (row,) = pq.read_table(folder / "streams/hf/data/train.parquet").to_pylist()
        assert (row["title"], row["instruction"]) == (said, said)
        (kept,) = (folder / "streams/jsonl/episodes.jsonl").read_bytes().splitlines()
        assert json.loads(kept)["steps"][0]["observation"]["title"] == said
        for sample in json.loads((folder / "streams/sharegpt/sharegpt.json").read_bytes()):
            assert sample["messages"][-1]["content"] == said
        shown = (folder / "terminal").read_text(encoding="utf-8")
        assert not set(COLOURS.sub("", shown)) & (OBEYED - {"\n"})
        page = (folder / "report/report.html").read_text(encoding="utf-8")
        assert not set(page) & (OBEYED - {"\n"})
        assert "<b>{{" not in page
        for chart in (folder / "report").glob("*.svg"):
            ElementTree.fromstring(chart.read_bytes())


@example(KILLER)
@given(any_text)
@settings(max_examples=25)
def test_the_viewer_answers_with_what_was_said(text: str) -> None:
    async def detail() -> bytes:
        store = StreamStore(await filled(text), SUBJECTS)
        fetched = await store.episode(builders.task().episode)
        assert fetched is not None
        found = detail_of(fetched, texts=TokenTexts(), calls={}, keeps_calls=True, siblings=(), rubric=RUBRIC)
        return bytes(json_answer(found).body)

    said = encodable(text)
    found = json.loads(anyio.run(detail))
    assert found["problems"] == []
    (step,) = found["steps"]
    assert (step["page"]["title"], step["answer"]["response"], step["answer"]["action"].get("text", "")) == (said, said, said)
    assert found["trajectory"]["task"]["instruction"] == said


@example(KILLER)
@given(any_text)
@settings(max_examples=50)
def test_lines_of_json_are_obeyed_by_no_terminal(text: str) -> None:
    said = encodable(text)
    of = replace(builders.trajectory(builders.task()), answer=said, error=said)
    fields = without_bytes(to_builtins(of, builtin_types=(bytes,)))
    with tempfile.TemporaryFile() as file:
        anyio.run(JsonLines(os.dup(file.fileno())).write, fields)
        file.seek(0)
        line = file.read().decode()
    assert not set(line.removesuffix("\n")) & OBEYED
    assert json.loads(line) == json.loads(json.dumps(fields))


@example(KILLER)
@given(any_text)
def test_a_terminal_obeys_nothing_but_colours(text: str) -> None:
    console = Console(file=io.StringIO(), width=60, force_terminal=True, color_system="standard")
    table = Drawn(title=Text(text), box=None)
    table.add_column(Text(text), overflow="fold")
    table.add_row(Text(text, "bold red"))
    with console.capture() as capture:
        console.print(table)
        console.print(Text(text, "green"), soft_wrap=True)
        console.print(text, markup=False, highlight=False)
    printed = capture.get()
    assert not set(COLOURS.sub("", printed)) & (OBEYED - {"\n"})
    printed.encode()
