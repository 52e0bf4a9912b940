"""Any code points at all: what enters a record becomes valid and bounded there, and nothing is obeyed by who shows it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import hypothesis.strategies as st
from hypothesis import example, given, settings
from msgspec import msgpack, to_builtins
from msgspec.structs import replace
from structlog.testing import capture_logs

from agents.context import Round, build_window
from agents.parsing import parse_response
from browser_workers.browser import EnvironmentState, PageState, Performed, View
from browser_workers.words import Worded
from bus.codec import decode, encode
from judges.attempts import ask_once
from judges.episode import JudgedEpisode
from judges.judge import Ruling, scored
from schemas.context_config import ContextConfig
from schemas.errors import BrowserError, PageFailed
from schemas.messages import (
    Action,
    ActionKind,
    Blockage,
    BrowserTab,
    Element,
    Judgement,
    Observation,
    StageVerdict,
    StepRequest,
)
from schemas.model_config import ModelConfig
from schemas.text import cut, encodable, harmless, spelled, valid, visible, visible_lines
from tests import builders
from tests.support.texts.any_text import OBEYED, any_text

KILLER = "Save \ud83d\x00\x1b[2J\x9b\u202e\u200b" + "x" * 300_000


@example(KILLER, 40)
@given(any_text, st.integers(0, 40))
def test_what_is_valid_can_be_kept(text: str, most: int) -> None:
    became = valid(text, most)
    became.encode()
    assert len(became) <= most
    assert not {character for character in became if character < " " or "\x7f" <= character <= "\x9f"} - {"\n", "\t"}
    assert valid(became, most) == became
    assert encodable(text[:100]) == valid(text[:100]) or set(text[:100]) & OBEYED


@example(KILLER, 40)
@given(any_text, st.integers(1, 40))
def test_what_is_visible_obeys_nobody(text: str, most: int) -> None:
    for became, bound in ((visible(text, most), most), (harmless(text), len(text))):
        assert len(became) <= bound
        assert not set(became) & (OBEYED - {"\n"} if became == harmless(text) else OBEYED)
        assert harmless(became) == became
    assert "\n" not in visible(text, most)
    assert not set(visible_lines(text)) & (OBEYED - {"\n"})
    assert text.startswith(cut(text, most))


@example(KILLER)
@given(any_text)
def test_json_is_spelt_so_that_it_says_the_same(text: str) -> None:
    text = encodable(text)
    written = spelled(json.dumps({"text": text}, ensure_ascii=False))
    assert not set(written) & OBEYED
    assert json.loads(written) == {"text": text}


@dataclass(frozen=True)
class Saying:
    """A session that says the same of everything. Satisfies `Session`."""

    text: str

    async def open(self) -> Performed:
        text = self.text
        return Performed(
            refused=text, navigation_error=text, notice=text, hit=text, changes=(text,) * 200, page_text=text,
            blockage=Blockage(site=text, sign="it refuses", provider="site", elsewhere=True),
        )  # fmt: skip

    async def perform(self, action: Action) -> Performed:
        return await self.open()

    async def state(self) -> PageState:
        text = self.text
        said = EnvironmentState(done=False, reward=0.0, utterance=text, action=Action(kind=ActionKind.TYPE, text=text))
        return PageState(url=text, title=text, environment=said, tabs=(BrowserTab(title=text, url=text),) * 200)

    async def view(self) -> View:
        element = Element(id=1, tag=self.text, text=self.text, box=(0, 0, 1, 1))
        screenshot = builders.observation(builders.task()).screenshot
        return View(
            screenshot=screenshot, state=await self.state(), elements=(element,) * 2000, accessibility_tree=self.text
        )  # fmt: skip

    async def page_values(self, expressions: Sequence[str]) -> tuple[str, ...]:
        return (self.text,) * len(expressions)

    egress = ""

    def has_other_egress(self) -> bool:
        return False

    async def blockage(self) -> Blockage | None:
        return Blockage(site=self.text, sign="it refuses", provider="site")

    async def pass_over_blockage(self) -> None: ...

    async def wait_failed(self) -> BrowserError:
        return PageFailed(self.text)


async def observed(text: str) -> Observation:
    """As `browser_workers.play` puts it together."""
    session = Worded(Saying(text))
    performed, view = await session.open(), await session.view()
    assert performed == await session.perform(Action(kind=ActionKind.WAIT))
    (value,) = await session.page_values(["x"])
    assert value == valid(value, 100_000)
    state, base = view.state, builders.observation(builders.task())
    assert state.environment is not None
    assert state.environment.action is not None
    return replace(
        base,
        url=state.url,
        title=state.title,
        error="; ".join((performed.refused, performed.notice, str(await session.wait_failed()))),
        elements=view.elements,
        accessibility_tree=view.accessibility_tree,
        tabs=state.tabs,
        hit=performed.hit,
        changes=performed.changes,
        page_text=performed.page_text,
        oracle_action=state.environment.action,
    )


@example(KILLER)
@given(any_text)
@settings(max_examples=50)
def test_an_observation_of_it_is_kept_and_put_into_a_prompt(text: str) -> None:
    observation = anyio.run(observed, text)
    data = encode(observation)
    assert data == msgpack.encode(observation), "the words of a page need no mending at the bus"
    assert len(data) < 2_000_000, "a fourth of what a message may have"
    assert decode(data) == observation
    task = replace(builders.task(), instruction=valid(text))
    answered = Round(observation, replace(builders.step_request(task), response=valid(text), thought=valid(text, 300)))
    for context in (ContextConfig(), ContextConfig(interaction_mode="set_of_marks", accessibility_tree=True, num_rounds=0)):
        window = build_window(task, [answered], observation, context=context, model=ModelConfig())
        for message in window.messages:
            for part in message.content:
                if isinstance(part, str):
                    assert part == valid(part, len(part))
                    assert "<|" not in part


SPELLINGS = st.sampled_from(
    [
        '{{"name": "computer_use", "arguments": {{"action": "type", "text": {}}}}}',
        '<tool_call>{{"name": "computer_use", "arguments": {{"action": "answer", "text": {}}}}}</tool_call>',
        "Action: {}\n",
        "{}",
    ]
)


@example(KILLER, "Action: {}\n", True)
@given(any_text, SPELLINGS, st.booleans())
def test_an_answer_is_kept_whatever_it_spells(text: str, spelling: str, ascii_only: bool) -> None:
    response = valid(spelling.format(json.dumps(text, ensure_ascii=ascii_only)))
    parsed = parse_response(response)
    of = builders.task()
    step = replace(builders.step_request(of), action=parsed.action, response=response, thought=parsed.thought)
    assert encode(step) == msgpack.encode(step)
    read = decode(encode(step))
    assert read == step
    assert isinstance(read, StepRequest)
    assert (read.completion_tokens, read.logprobs) == ((4, 5), (-0.5, -0.25)), "tokens are nobody's text"
    for each in (read.action.text, read.response, read.thought):
        assert each == valid(each)


@dataclass(frozen=True)
class Wordy:
    """Satisfies `Judge`."""

    text: str
    raises: bool
    name: str = "wordy_v1"

    async def judge(self, episode: JudgedEpisode) -> Ruling:
        if self.raises:
            raise ValueError(self.text)
        return scored(passed=True, stages=(StageVerdict(stage=self.text, passed=True, reasoning=self.text),))


@example(KILLER, True)
@example(KILLER, False)
@given(any_text, st.booleans())
@settings(max_examples=50)
def test_a_verdict_is_kept_whatever_its_reason(text: str, raises: bool) -> None:
    of = builders.trajectory(builders.task())
    with capture_logs():
        ruling = anyio.run(ask_once, Wordy(text, raises), builders.judged_episode(of))
    judgement = replace(builders.judgement(of), stages=ruling.stages, error=ruling.error)
    assert encode(judgement) == msgpack.encode(judgement)
    read = decode(encode(judgement))
    assert isinstance(read, Judgement)
    assert read == judgement
    for each in (read.error, *(stage.reasoning for stage in read.stages)):
        assert each == valid(each, 20_000)
    assert len(json.dumps(to_builtins(ruling.stages))) < 300_000
