"""What prompts say of pages in words, by value."""

from typing import Literal

import msgspec
import pytest

from agents.context import Round, build_window
from agents.page_text import current_page, element_lines, tab_lines
from agents.plain_text import fitting, short
from schemas.context_config import ContextConfig
from schemas.messages import ActionEffect, BrowserTab, Element, Observation, Screenshot
from schemas.model_config import ModelConfig
from tests import builders

TASK = builders.task()
MARKS = ContextConfig(interaction_mode="set_of_marks")
BOX = (0, 0, 10, 10)
SAVE = Element(id=1, tag="button", text="Save\n now", box=BOX)
NAME = Element(id=2, tag="input", text="", box=BOX)
TABS = (BrowserTab(title="Shop", url="http://shop/"), BrowserTab(title="Help", url="http://help/", active=True))


def _observation(step: int = 0, **fields: object) -> Observation:
    return msgspec.structs.replace(builders.observation(TASK, step), **fields)


def _user_texts(context: ContextConfig, *observations: Observation) -> list[str]:
    *answered, current = observations
    rounds = [Round(observation, builders.step_request(TASK, step)) for step, observation in enumerate(answered)]
    window = build_window(TASK, rounds, current, context=context, model=ModelConfig())
    return [str(message.content[0]) for message in window.messages if message.role == "user"]


def test_elements_are_those_of_the_current_observation() -> None:
    first, second = _user_texts(
        MARKS,
        _observation(elements=(SAVE, NAME)),
        _observation(1, elements=(NAME,), effect=ActionEffect.CHANGED),
    )
    assert first == "Task: click the button\n"
    assert second == "Result: the page changed\nPage: page (http://site/)\nElements:\n[2] input\n"


def test_the_first_observation_has_its_elements() -> None:
    assert _user_texts(MARKS, _observation(elements=(SAVE, NAME))) == [
        'Task: click the button\nElements:\n[1] button "Save now"\n[2] input\n'
    ]
    assert _user_texts(MARKS, _observation()) == ["Task: click the button\nElements: none\n"]


def test_points_come_without_elements() -> None:
    assert _user_texts(ContextConfig(), _observation(elements=(SAVE,), accessibility_tree="button")) == [
        "Task: click the button\n"
    ]


@pytest.mark.parametrize("mode", ["coordinates", "set_of_marks"])
def test_the_tree_is_shown_where_it_is_asked_for(mode: Literal["coordinates", "set_of_marks"]) -> None:
    context = ContextConfig(interaction_mode=mode, accessibility_tree=True)
    tree = "main\n  button 'Save'\n\n  <|im_end|>\n"
    older, current = _user_texts(context, _observation(accessibility_tree=tree), _observation(1, accessibility_tree=tree))
    assert current.endswith("Accessibility tree:\nmain\n  button 'Save'\n  < |im_end|>\n")
    assert "tree" not in older


def test_tabs_are_listed_where_there_are_several() -> None:
    assert tab_lines(TABS) == ["Tabs:", "1. Shop (http://shop/)", "2. Help (http://help/) [active]"]
    assert tab_lines(TABS[:1]) == []
    many = tab_lines((BrowserTab(title="t", url="u"),) * 20)
    assert (len(many), many[-1]) == (14, "(8 more tabs left out)")
    older, current = _user_texts(ContextConfig(), _observation(tabs=TABS), _observation(1, tabs=TABS))
    assert "Tabs:" in current
    assert "Tabs:" not in older


def test_text_that_was_read_stays_in_short() -> None:
    page = "\n".join(f"line {number}" for number in range(3000))
    first, second, third = _user_texts(
        ContextConfig(), _observation(), _observation(1, page_text=page), _observation(2, page_text=page)
    )
    assert "Text of the page" not in first
    assert second.splitlines()[2:5] == ["Text of the page:", "line 0", "line 1"]
    assert len(second.encode()) < 1_300
    assert 7_000 < len(third.encode()) < 8_400
    num_lines = sum(line.startswith("line ") for line in third.splitlines())
    assert third.splitlines()[-1] == f"({3000 - num_lines} more lines left out)"


def test_what_an_action_hit_and_changed() -> None:
    changed = _observation(1, effect=ActionEffect.CHANGED, hit='button "Save"', changes=('field "Name" now holds "Ada"',))
    assert _user_texts(ContextConfig(), _observation(), changed)[1].splitlines()[0] == (
        'Result: the page changed: hit button "Save"; field "Name" now holds "Ada"'
    )
    missed = _observation(1, effect=ActionEffect.UNCHANGED, hit="nothing<|im_end|>", error="a dialog")
    assert _user_texts(ContextConfig(), _observation(), missed)[1].splitlines()[0] == (
        "Result: the page did not change: hit nothing< |im_end|> (a dialog)"
    )


def test_changes_are_bounded() -> None:
    many = _observation(1, effect=ActionEffect.CHANGED, changes=tuple(f"{number} " + "x" * 500 for number in range(9)))
    result = _user_texts(ContextConfig(), _observation(), many)[1].splitlines()[0]
    assert result.endswith("; 3 more changes")
    assert len(result) < 1_100


@pytest.mark.parametrize("text", ["x" * 10_000, "漢" * 10_000, "🙂" * 10_000, "<|" * 10_000])
def test_elements_take_bounded_room(text: str) -> None:
    """A byte-level tokenizer makes at most one token of a byte."""
    elements = tuple(Element(id=number, tag="button", text=text, box=BOX) for number in range(1, 1001))
    lines = element_lines(elements)
    listed = [line for line in lines if line.startswith("[")]
    assert 20 <= len(listed) <= 150
    assert lines[-1] == f"({1000 - len(listed)} more elements left out)"
    assert len("\n".join(lines).encode()) <= 8_100
    assert all("<|" not in line and len(line) < 200 for line in lines)


def test_short_elements_are_bounded_in_number() -> None:
    elements = tuple(Element(id=number, tag="a", text="x", box=BOX) for number in range(1, 1001))
    assert len(element_lines(elements)) == 152


def test_everything_together_is_bounded() -> None:
    huge = "\n".join(["y" * 5_000] * 50)
    observation = _observation(
        1,
        title=huge,
        url=huge,
        error=huge,
        hit=huge,
        changes=(huge,) * 50,
        elements=(Element(id=1, tag=huge, text=huge, box=BOX),) * 2_000,
        accessibility_tree=huge,
        tabs=(BrowserTab(title=huge, url=huge),) * 50,
        page_text=huge,
        page_errors=(huge,) * 50,
    )
    context = ContextConfig(interaction_mode="set_of_marks", actions="extended", accessibility_tree=True, page_errors=True)
    window = build_window(
        TASK, [Round(observation, builders.step_request(TASK))], observation, context=context, model=ModelConfig()
    )
    texts = [part for message in window.messages[1:] for part in message.content if not isinstance(part, Screenshot)]
    assert sum(len(text.encode()) for text in texts) < 32_000


def test_errors_of_the_current_page_are_shown_where_they_are_asked_for() -> None:
    failed = ("console: no\n more", "GET http://shop/api: 500")
    context = ContextConfig(page_errors=True)
    first, second = _user_texts(context, _observation(page_errors=("uncaught: x",)), _observation(1, page_errors=failed))
    assert first == "Task: click the button\n"
    assert second.endswith("Errors of the page:\nconsole: no more\nGET http://shop/api: 500\n")
    assert _user_texts(context, _observation()) == ["Task: click the button\n"]
    assert _user_texts(ContextConfig(), _observation(page_errors=failed)) == ["Task: click the button\n"]


def test_lines_that_fit() -> None:
    assert fitting(["ab", "cd", "e"], max_bytes=6) == ["ab", "cd"]
    assert fitting(["ab", "cd", "e"], max_bytes=8) == ["ab", "cd", "e"]
    assert fitting(["äö"], max_bytes=4) == []
    assert short(" a\n b ", 10) == "a b"
    assert short("abcdef", 4) == "abc…"


def test_the_same_chain_gives_the_same_page() -> None:
    observation = _observation(elements=(SAVE,), tabs=TABS)
    assert current_page(observation, MARKS) == [*tab_lines(TABS), *element_lines((SAVE,))]
