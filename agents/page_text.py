"""Describes the page for the prompt, in words beside its screenshot: tabs, marked elements, accessibility tree, text.

Invariant: every part is bounded, and says how much of it was left out.
"""

from collections.abc import Sequence

from agents.action_space import ActionSpace
from agents.plain_text import fitting, plain, short
from schemas.context_config import ContextConfig
from schemas.messages import BrowserTab, Element, Observation

_MAX_ELEMENTS = 150
_MAX_ELEMENTS_BYTES = 8_000
_MAX_ELEMENT_TEXT = 80
_MAX_TREE_BYTES = 8_000
_MAX_READ_BYTES = 8_000
_MAX_EARLIER_READ_BYTES = 1_000
_MAX_LINE = 400
_MAX_ERROR = 200
_MAX_ERRORS_BYTES = 2_000
_MAX_TABS = 12
_MAX_TITLE = 80
_MAX_URL = 120


def current_page(observation: Observation, context: ContextConfig) -> list[str]:
    """Lines about the current observation only: they would mislead once the page has changed."""
    lines = tab_lines(observation.tabs, first=ActionSpace.of(context).tool.first_tab)
    if context.interaction_mode == "set_of_marks":
        lines += element_lines(observation.elements)
    if context.accessibility_tree and observation.accessibility_tree:
        lines += _section("Accessibility tree:", observation.accessibility_tree, _MAX_TREE_BYTES)
    if context.page_errors:
        lines += error_lines(observation.page_errors)
    return lines + read_text(observation)


def tab_lines(tabs: Sequence[BrowserTab], *, first: int = 1) -> list[str]:
    """Numbered from `first`; nothing while there is one."""
    if len(tabs) < 2:
        return []
    lines = [
        plain(f"{number}. {short(tab.title, _MAX_TITLE)} ({short(tab.url, _MAX_URL)})" + " [active]" * tab.active)
        for number, tab in enumerate(tabs[:_MAX_TABS], start=first)
    ]
    return ["Tabs:", *lines, *_left_out(len(tabs) - _MAX_TABS, "tabs")]


def element_lines(elements: Sequence[Element]) -> list[str]:
    if not elements:
        return ["Elements: none"]
    kept = fitting((_element(element) for element in elements[:_MAX_ELEMENTS]), max_bytes=_MAX_ELEMENTS_BYTES)
    return ["Elements:", *kept, *_left_out(len(elements) - len(kept), "elements")]


def error_lines(errors: Sequence[str]) -> list[str]:
    """What failed on the page; nothing where nothing did."""
    if not errors:
        return []
    kept = fitting((plain(short(error, _MAX_ERROR)) for error in errors), max_bytes=_MAX_ERRORS_BYTES)
    return ["Errors of the page:", *kept, *_left_out(len(errors) - len(kept), "errors")]


def read_text(observation: Observation, *, earlier: bool = False) -> list[str]:
    """What a `read_page` brought; of an earlier step, its beginning."""
    if not observation.page_text:
        return []
    return _section("Text of the page:", observation.page_text, _MAX_EARLIER_READ_BYTES if earlier else _MAX_READ_BYTES)


def _element(element: Element) -> str:
    text = short(element.text, _MAX_ELEMENT_TEXT)
    return plain(f"[{element.id}] {short(element.tag, _MAX_ELEMENT_TEXT)}" + (f' "{text}"' if text else ""))


def _section(heading: str, text: str, max_bytes: int) -> list[str]:
    """Indentation is kept: it is the tree."""
    lines = [plain(_cut(line.rstrip())) for line in text.splitlines() if line.strip()]
    kept = fitting(lines, max_bytes=max_bytes)
    return [heading, *kept, *_left_out(len(lines) - len(kept), "lines")]


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 1] + "…"


def _left_out(number: int, of: str) -> list[str]:
    return [f"({number} more {of} left out)"] if number > 0 else []
