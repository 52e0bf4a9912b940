"""Conversations as episodes of a run: what the streams hold, imported twice, and trained on through kills."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest
from anyio.from_thread import check_cancelled
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.action_space import ActionSpace
from agents.tokens import PromptTokenizer
from bus import chain
from bus.memory import MemoryBus
from ops.archive.importer import Importer
from ops.archive.stream_source import StreamSource
from ops.sft.episodes import EpisodeMaker
from ops.sft.findings import Findings
from ops.sft.formats import Found, ReadingOptions, reader_of
from ops.sft.importing import ConversationRequest, refuse_bad
from ops.sft.rendering import Renderer
from ops.sft.run_contents import RunContents
from ops.sft.source import ConversationSource
from ops.simulation.training import SimulatedBuilder
from ops.web.detail import Chain
from ops.web.prompt import prompt_of
from ops.web.token_text import token_texts
from schemas.algorithm_config import AlgorithmConfig
from schemas.context_config import ContextConfig
from schemas.errors import ConfigurationError
from schemas.messages import ActionKind, Judgement, Observation, RecordRef, StepRequest, Verdict
from schemas.model_config import ModelConfig
from schemas.objective_config import ObjectiveConfig
from tests.builders import RUBRIC, RUN
from tests.support.sft.conversations import episode, image_part, png, thinking_model, write_lines
from tests.support.training.learning_world import Killed, Recorder, train
from tests.support.training.trainer_world import SUBJECTS
from trainer.episodes.episode_steps import StepRules, StepStore
from trainer.samples import Patches, Sample

pytestmark = pytest.mark.anyio
EVERY_ANSWER = AlgorithmConfig(num_train_epochs=1, replay_iterations=1, filter_same_screenshot=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return thinking_model(tmp_path_factory.mktemp("model"))


def source(model: Path, file: Path, *, cutoff_len: int = 10_000, max_bytes: int = 0) -> ConversationSource:
    return ConversationSource(
        path=file,
        read=reader_of("openai"),
        options=ReadingOptions(),
        renderer=Renderer(tokenizer=PromptTokenizer(model), num_screenshots=1),
        maker=EpisodeMaker(run=RUN, rubric=RUBRIC, space=ActionSpace()),
        cutoff_len=cutoff_len,
        max_bytes=max_bytes,
    )


async def imported(model: Path, file: Path, bus: MemoryBus | None = None) -> tuple[MemoryBus, Importer]:
    bus = bus or MemoryBus(SUBJECTS)
    importer = Importer(bus=bus, subjects=SUBJECTS)
    read = source(model, file)
    async for each in read.episodes(await read.examine()):
        await importer.episode(each)
        for judgement in each.judgements:
            await importer.judgement(judgement)
    return bus, importer


async def test_a_conversation_is_an_episode_that_succeeded(model: Path, tmp_path: Path) -> None:
    bus, importer = await imported(model, write_lines(tmp_path / "a.jsonl", [episode()]))
    assert (importer.done.num_episodes, importer.done.num_judgements) == (1, 1)
    (stored,) = [each async for each in StreamSource(bus, SUBJECTS).episodes()]
    assert stored.is_complete
    judged = stored.judgements[0].message
    assert isinstance(judged, Judgement)
    assert (judged.verdict, judged.reward, judged.rubric) == (Verdict.SUCCESS, 1.0, RUBRIC)
    task = stored.trajectory.task
    assert (task.task, task.instruction, task.demonstrate) == ("t1", "Click.", True)
    thoughts = []
    for step, ref in enumerate(stored.trajectory.steps):
        seen = await chain.read(bus, SUBJECTS, stored.trajectory.observations[step])
        answer = await chain.read(bus, SUBJECTS, ref)
        assert seen is not None
        assert answer is not None
        assert isinstance(seen.message, Observation)
        assert isinstance(answer.message, StepRequest)
        assert seen.message.screenshot.data == png(step)
        assert answer.message.screenshots == (step,)
        assert answer.message.parsed
        assert answer.message.response.startswith(f"Thought {step}\n</think>")
        assert answer.message.action.kind is ActionKind.WAIT, "a click without a point is none of this run's"
        thoughts.append(answer.message.thought)
    assert thoughts == [f'{{"name": "click", "arguments": {{"x": {step}}}}}' for step in range(3)]


async def test_the_viewer_shows_the_prompt_that_is_learnt(model: Path, tmp_path: Path) -> None:
    bus, _ = await imported(model, write_lines(tmp_path / "a.jsonl", [episode()]))
    (stored,) = [each async for each in StreamSource(bus, SUBJECTS).episodes()]
    shown = Chain.of(stored, [])
    prompt = prompt_of(shown, 1, ContextConfig(), ModelConfig(), token_texts(str(model)))
    (part,) = prompt.messages[0].parts
    assert part.text.count("<|image_pad|>") == 1, "of many tokens one is shown"
    assert "<think>\nThought 0\n</think>" in part.text
    assert prompt.screenshots == (1,)
    assert prompt.remark.startswith("Imported")
    assert "no text here" in prompt_of(shown, 1, ContextConfig(), ModelConfig()).remark


async def test_importing_again_changes_nothing_and_more_is_added(model: Path, tmp_path: Path) -> None:
    bus, first = await imported(model, write_lines(tmp_path / "a.jsonl", [episode(), episode(task="t2")]))
    _, again = await imported(model, write_lines(tmp_path / "b.jsonl", [episode(task="t2"), episode(), episode()]), bus)
    assert again.done.num_records == again.done.num_judgements == 0
    assert again.done.num_known == first.done.num_records + 2 * 2
    _, more = await imported(model, write_lines(tmp_path / "c.jsonl", [episode(), episode(task="a task/with signs")]), bus)
    assert more.done.num_judgements == 1
    judged = await bus.history(SUBJECTS.judged, SUBJECTS.judgements(None))
    assert len(judged) == 3


async def test_a_look_counts_names_and_refuses(model: Path, tmp_path: Path) -> None:
    bad = {"messages": [{"role": "user", "content": "nobody answers"}]}
    file = write_lines(tmp_path / "a.jsonl", [episode(), bad, episode(), episode(1, task="t2")])
    found = await source(model, file, cutoff_len=300).examine()
    assert (found.num_conversations, found.num_answers) == (2, 4)
    assert [problem.record for problem in found.findings.problems] == [2]
    assert found.findings.unread["records that are the same as an earlier one"] == 1
    assert found.findings.unread["metadata.reward"] == 3
    assert any(what.startswith("answers that are longer") for what in found.findings.unread)
    request = ConversationRequest(path=file, form="openai")
    with pytest.raises(ConfigurationError, match=r"1 record of .* cannot be read .* --skip-bad; nothing was imported"):
        refuse_bad(found.findings, request)
    refuse_bad(found.findings, ConversationRequest(path=file, form="openai", skip_bad=True))
    refuse_bad(Findings(), request)


async def test_a_look_at_a_run_counts_what_it_has_and_names_what_it_has_otherwise(model: Path, tmp_path: Path) -> None:
    bus, _ = await imported(model, write_lines(tmp_path / "a.jsonl", [episode(), episode(task="t2")]))
    mended = episode()
    mended["metadata"]["intent"] = "Click it."
    looked = source(model, write_lines(tmp_path / "b.jsonl", [mended, episode(task="t2"), episode(task="t3")]))
    examined = await looked.examine(holds=RunContents(bus, SUBJECTS).holds)
    assert (examined.num_conversations, examined.num_absent) == (2, 1)
    assert [problem.record for problem in examined.findings.problems] == [1]
    assert "the run holds this conversation with another instruction" in examined.findings.problems[0].what
    taken = [each async for each in looked.episodes(examined)]
    assert [each.trajectory.task.task for each in taken] == ["t2", "t3"], "what is bad is written by no pass"
    stored = [*(record.data for record in taken[1].records), taken[1].trajectory_data, taken[1].judgements[0].data]
    assert examined.num_bytes == sum(map(len, stored))


@pytest.mark.parametrize("good", [True, False])
async def test_a_look_can_be_stopped_at_any_record(model: Path, tmp_path: Path, good: bool) -> None:
    record = episode(1) if good else {"messages": 3}
    looked, count = source(model, write_lines(tmp_path / "a.jsonl", [record] * 50)), 0
    with anyio.CancelScope() as scope:

        def stop() -> None:
            nonlocal count
            count += 1
            if count == 3:
                anyio.from_thread.run_sync(scope.cancel)
            check_cancelled()

        def read(path: Path, findings: Findings, options: ReadingOptions) -> Iterator[Found]:
            findings.before_each = stop
            return looked.read(path, findings, options)

        await replace(looked, read=read).examine()
    assert scope.cancelled_caught
    assert count < 10


async def test_what_no_message_of_the_run_can_hold_is_named(model: Path, tmp_path: Path) -> None:
    found = await source(model, write_lines(tmp_path / "a.jsonl", [episode()]), max_bytes=4200).examine()
    assert "and bus_config.max_payload_bytes is 4200" in found.findings.problems[0].what


_words = st.text(max_size=6) | st.sampled_from(["<think>", "</think>", "\ue000answer 0\ue001", "<|im_end|>", "<image>"])
_json = st.recursive(
    st.none() | st.integers() | _words, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_words, inner)
)
_calls = st.lists(st.fixed_dictionaries({"function": st.fixed_dictionaries({"name": _words, "arguments": _json})}), max_size=2)
_parts = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": _words}) | st.just(image_part(0)), max_size=3)
_messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": _words | _parts},
    optional={"tool_calls": _calls, "weight": st.sampled_from([0, 1])},
)
_records = st.fixed_dictionaries(
    {"messages": st.lists(_messages, max_size=5)},
    optional={"tools": st.lists(st.dictionaries(_words, _json), max_size=2), "metadata": st.dictionaries(_words, _json)},
)


@given(records=st.lists(_records, min_size=1, max_size=3))
@settings(max_examples=30)
def test_any_conversation_is_an_episode_or_named(model: Path, tmp_path: Path, records: list[dict[str, Any]]) -> None:
    found = anyio.run(source(model, write_lines(tmp_path / "a.jsonl", records)).examine)
    same = found.findings.unread["records that are the same as an earlier one"]
    assert found.num_conversations + len(found.findings.problems) + same == len(records)


async def test_every_answer_is_learnt_once_an_epoch_through_kills(model: Path, tmp_path: Path) -> None:
    """The recorder holds that a step which is made again is the same: order, tokens, screenshots, weights."""
    bus, _ = await imported(model, write_lines(tmp_path / "a.jsonl", [episode(task=f"t{task}") for task in range(4)]))
    recorder = Recorder(kills={1, 4, 6})
    for _ in range(4):
        try:
            await train(
                bus, tmp_path, recorder, ObjectiveConfig(), num_iterations=2, batch=100, algorithm=EVERY_ANSWER, num_stored=4
            )
        except Killed:
            continue
        break
    assert not recorder.kills
    learnt = [(item.sample.ref.episode, item.sample.ref.step) for item in recorder.items]
    assert len(learnt) == 2 * 4 * 3
    assert sorted(learnt[:12]) == sorted(set(learnt)) == sorted(learnt[12:])
    assert learnt[:12] != learnt[12:], "each epoch has an order of its own"
    for item in recorder.items:
        answer = await chain.read(bus, SUBJECTS, item.sample.ref)
        assert answer is not None
        assert isinstance(answer.message, StepRequest)
        assert tuple(item.sample.tokens[item.sample.num_prompt :]) == answer.message.completion_tokens
        assert (item.targets.weights > 0).all()


async def test_on_the_last_turn_alone(model: Path, tmp_path: Path) -> None:
    bus, _ = await imported(model, write_lines(tmp_path / "a.jsonl", [episode(), episode(2, task="t2")]))
    recorder = Recorder()
    last = ObjectiveConfig(train_on_last_turn=True)
    await train(bus, tmp_path, recorder, last, num_iterations=1, batch=9, algorithm=EVERY_ANSWER, num_stored=2)
    assert sorted(item.sample.ref.step for item in recorder.items) == [1, 2]


async def test_a_stored_data_set_to_imitate_is_sorted_by_its_answers_alone(model: Path, tmp_path: Path) -> None:
    """No screenshot is fetched, nor sample built, before it is trained on."""
    bus, _ = await imported(model, write_lines(tmp_path / "a.jsonl", [episode()]))
    (stored,) = [each async for each in StreamSource(bus, SUBJECTS).episodes()]
    built: list[RecordRef] = []

    class Watched(SimulatedBuilder):
        def build(self, ref: RecordRef, step: StepRequest, screenshots: Sequence[Patches]) -> Sample:
            built.append(ref)
            return super().build(ref, step, screenshots)

    for is_stored, count in ((True, 0), (False, 3)):
        rules = StepRules.of(EVERY_ANSWER, ObjectiveConfig(), stored=is_stored)
        store = StepStore(bus, SUBJECTS, Watched(), cache_bytes=1 << 20, rules=rules)
        found = await store.episode(stored.trajectory)
        assert found.usable == list(stored.trajectory.steps)
        assert all(length > 0 for length in found.lengths)
        assert len(built) == count
