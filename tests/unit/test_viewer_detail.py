"""Episodes as the viewer's pages show them: what is there, what is missing, and where two part."""

from dataclasses import replace

import msgspec
import pytest

from bus.memory import MemoryBus
from bus.subjects import Subjects
from ops.archive.episodes import StoredRecord
from ops.web.comparison import compare
from ops.web.detail import Chain, Detail, detail_of
from ops.web.prompt import prompt_of
from ops.web.raw import raw_episode, raw_step
from ops.web.store import Fetched
from ops.web.stream_store import StreamStore
from ops.web.token_text import TokenTexts, token_texts
from schemas.bus_config import BusConfig
from schemas.context_config import ContextConfig
from schemas.errors import RecordGone
from schemas.ids import EpisodeId
from schemas.messages import Split
from schemas.model_config import ModelConfig
from tests import builders
from tests.support.runs import viewer_world
from tests.support.runs.viewer_world import ACTIONS, GONE, LEFT, RIGHT, RUBRIC

pytestmark = pytest.mark.anyio
SUBJECTS = Subjects(builders.RUN)


@pytest.fixture
async def store() -> StreamStore:
    bus = MemoryBus(SUBJECTS, BusConfig(run=builders.RUN), (RUBRIC,))
    await viewer_world.fill(bus, SUBJECTS)
    return StreamStore(bus, SUBJECTS)


async def fetch(store: StreamStore, episode: EpisodeId) -> Fetched:
    fetched = await store.episode(episode)
    assert fetched is not None
    return fetched


def shown(fetched: Fetched) -> Detail:
    return detail_of(fetched, texts=TokenTexts(), calls={}, keeps_calls=True, siblings=(), rubric=RUBRIC)


async def test_steps_hold_what_was_seen_said_and_done(store: StreamStore) -> None:
    detail = shown(await fetch(store, LEFT))
    assert [step.answer.action for step in detail.steps if step.answer] == list(ACTIONS)
    first, last = detail.steps[0], detail.steps[-1]
    assert first.page is not None
    assert first.page.screenshot is not None
    assert first.page.screenshot.url.startswith(f"/api/screenshots/{first.page.screenshot.sha256}/{LEFT}/0")
    assert first.effect is not None
    assert first.effect.hit == "button “Search”"
    assert last.effect is None
    assert detail.problems == ()
    assert [ruled.judgement.verdict.value for ruled in detail.ruled] == ["success"]


async def test_an_episode_whose_chain_aged_out_says_so(store: StreamStore) -> None:
    detail = shown(await fetch(store, GONE))
    assert len(detail.steps) == 3
    assert all(step.page is None and step.answer is None for step in detail.steps)
    assert "5 of the 5 records" in detail.problems[0]
    assert await store.episode(EpisodeId("never-played")) is None


async def test_a_record_of_a_newer_version_says_so(store: StreamStore) -> None:
    fetched = await fetch(store, LEFT)
    records = [
        StoredRecord(r.subject_suffix, r.time_s, b"\xc1") if ".obs.1" in r.subject_suffix else r
        for r in fetched.episode.records
    ]
    detail = shown(Fetched(replace(fetched.episode, records=tuple(records))))
    assert detail.steps[1].page is None
    assert detail.steps[1].answer is not None
    assert any("1.obs.1 cannot be shown" in problem for problem in detail.problems)


async def test_two_episodes_part_where_they_did_something_else(store: StreamStore) -> None:
    comparison = compare(shown(await fetch(store, LEFT)), shown(await fetch(store, RIGHT)))
    assert comparison.first_difference == 1
    assert [(pair.same_screenshot, pair.same_action) for pair in comparison.pairs[:3]] == [
        (True, True),
        (True, False),
        (False, False),
    ]
    assert comparison.remark == ""
    same = compare(comparison.left, comparison.left)
    assert same.first_difference is None
    assert "different tasks" in compare(comparison.left, shown(await fetch(store, GONE))).remark
    played = comparison.left.trajectory
    held_out = msgspec.structs.replace(played, task=msgspec.structs.replace(played.task, split=Split.EVAL))
    assert "different tasks" in compare(comparison.left, replace(comparison.left, trajectory=held_out)).remark


async def test_the_prompt_shows_the_screenshots_that_were_asked_with(store: StreamStore) -> None:
    chain = Chain.of((await fetch(store, LEFT)).episode, [])
    prompt = prompt_of(chain, 2, ContextConfig(num_rounds=4), ModelConfig())
    assert prompt.screenshots == (0, 1, 2)
    assert [part.screenshot for message in prompt.messages for part in message.parts if part.screenshot is not None] == [
        0,
        1,
        2,
    ]
    assert prompt.messages[0].role == "system"
    assert "Find the brass lamp" in prompt.messages[1].parts[0].text
    assert prompt.remark == ""
    assert "other screenshots" in prompt_of(chain, 4, ContextConfig(num_rounds=0), ModelConfig()).remark
    with pytest.raises(RecordGone, match="no longer kept"):
        prompt_of(chain, 9, ContextConfig(), ModelConfig())


async def test_raw_records_name_screenshots_in_place_of_their_bytes(store: StreamStore) -> None:
    fetched = await fetch(store, LEFT)
    step = raw_step(Chain.of(fetched.episode, []), 1)
    assert "sha256" in step["observation"]["message"]["screenshot"]["data"]
    assert step["answer"]["message"]["action"]["kind"] == "drag"
    whole = raw_episode(fetched.episode, ())
    assert [record["record"] for record in whole["records"]][:3] == ["task", "1.start.0", "1.obs.0"]


class Bytes:
    """A tokenizer whose tokens are bytes."""

    def decode(self, tokens: list[int], *, skip_special_tokens: bool) -> str:
        assert not skip_special_tokens
        return bytes(tokens).decode(errors="replace")


@pytest.mark.parametrize("text", ["lamp", "größe 灯", "end ü"])
def test_tokens_of_one_character_stand_together(text: str) -> None:
    tokens = list(text.encode())
    texts = TokenTexts(Bytes()).of(tokens)
    assert len(texts) == len(tokens)
    assert "".join(texts) == text


def test_an_unfinished_character_is_shown_as_it_is() -> None:
    assert TokenTexts(Bytes()).of([65, 0xC3]) == ("A", "\ufffd")


def test_without_a_tokenizer_tokens_have_no_text() -> None:
    assert token_texts("").of([1, 2]) == ()
    assert token_texts("/nowhere").of([1, 2]) == ()
