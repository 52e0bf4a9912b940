"""Pages whose words are no valid text: their episodes are played to the end by the real worker, and so are the next ones."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from browser_workers.browser import Opening
from browser_workers.site import Documents
from bus import chain
from bus.ports import Bus
from schemas.context_config import ContextConfig
from schemas.messages import (
    Action,
    ActionKind,
    Check,
    CheckKind,
    Observation,
    Outcome,
    RecordRef,
    StepRequest,
    Task,
    Trajectory,
)
from schemas.text import valid
from tests import builders
from tests.support.browsers.browser_pages import ORIGIN, page
from tests.support.browsers.page_plays import SUBJECTS, play, playing

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
SIZE = (400, 300)
HUGE = 10_000_000
LARGE = 100_000
"""What is laid out takes a page's memory."""
VALUES = 100_000
"""Characters of a check's value that are kept."""
SMILE = "\U0001f600"
FILLS = "style='position:absolute;inset:0;width:100%;height:90%'"
SAYS = f"'\\ud800\\x1b[2J\\x00\\u202e' + 'x'.repeat({HUGE}) + '\\ud83d'"
SHOWS = SAYS.replace(str(HUGE), str(LARGE))
PAGES = {
    # 59 letters before it, where a name is cut behind 59; 99 where a mark's text is.
    "label": page(f"<button {FILLS}>{'a' * 58}{SMILE}{'b' * 39}{SMILE}{'c' * 50}</button>"),
    "title": page(f"<button {FILLS}>go</button><script>document.title = {SAYS}</script>"),
    "long title": page(f"<button {FILLS}>go</button><script>document.title = 'a'.repeat(1999) + '{SMILE}b'</script>"),
    "address": page(f"<button {FILLS}>go</button><script>location.hash = {SAYS}.slice(0, 9000)</script>"),
    "named": page(f"<button {FILLS}>go</button><img name=title><img name=getAnimations><img name=hidden>"),
    "functions": page(
        f"<button {FILLS} onclick='document.title = 1'>go</button><script>document.title = {SAYS};"
        "String = () => 'x'.repeat(5e7); String.prototype.slice = String.prototype.toWellFormed = () => 'x'.repeat(5e7);"
        "RegExp.prototype.exec = String.prototype.replace = Array.from = JSON.stringify = () => 'x'.repeat(5e7);"
        "window.answer = 'x'.repeat(5e7)</script>"
    ),
    "choices": page(
        f"<select {FILLS}><option></option></select><script>document.querySelector('option').label = {SHOWS}</script>"
    ),
    "dialog": page(f"<button {FILLS} onclick=\"alert({SAYS.replace(chr(39), '`')})\">go</button>"),
    "copied": page(f"<button {FILLS}>go</button><p></p><script>document.querySelector('p').textContent = {SHOWS}</script>"),
    "tag": page(f"<script>const e = document.createElement('x-' + 'y'.repeat({LARGE})); e.textContent = {SHOWS};"
                "e.tabIndex = 0; e.style = 'position:absolute;inset:0'; e.setAttribute('role', '\\ud800'.repeat(50));"
                "document.body.append(e)</script>"),
}  # fmt: skip


class Site:
    """Satisfies `Suite`."""

    def resolve(self, name: str, query: str) -> Opening:
        return Opening(url=f"{ORIGIN}/", site=Documents(ORIGIN, {"/": PAGES[name]}), quiet_s=0.03)


class Probed(Site):
    """Pages with a state of their own, about which they lie."""

    def resolve(self, name: str, query: str) -> Opening:
        return replace(super().resolve(name, query), probe="({done: false, reward: 1, utterance: `${document.title}`})")


def task(name: str, index: int) -> Task:
    checks = tuple(
        Check(kind=CheckKind.PAGE, expected=("x",), expression=expression)
        for expression in ("document.title", "window.answer", "document.body.textContent")
    )
    made = builders.task(f"t{index}", index=index)
    return msgspec.structs.replace(made, website=f"site:{name}", checks=checks, max_steps=5)


def acts(observation: Observation) -> Action:
    """Everything that makes a page say something."""
    middle = (500.0, 500.0)
    return (
        Action(kind=ActionKind.CLICK, point=middle),
        Action(kind=ActionKind.READ_PAGE),
        Action(kind=ActionKind.SELECT, point=middle, text="no such option"),
        Action(kind=ActionKind.PRESS, keys=("Control+a", "Control+c")),
        Action(kind=ActionKind.ANSWER, text="over"),
    )[observation.step]


def marked(observation: Observation) -> Action:
    action = acts(observation)
    return action if action.point is None else msgspec.structs.replace(action, point=None, element=1)


def strings(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for part in value.values() for text in strings(part)]
        case list() | tuple():
            return [text for part in value for text in strings(part)]
        case _:
            return []


async def records(bus: Bus, trajectory: Trajectory) -> list[Observation | StepRequest]:
    refs: list[RecordRef] = [*trajectory.observations, *trajectory.steps]
    found = [await chain.read(bus, SUBJECTS, ref) for ref in refs]
    return [each.message for each in found if each and isinstance(each.message, Observation | StepRequest)]


@pytest.mark.parametrize(("suite", "mode"), [(Site(), "coordinates"), (Site(), "set_of_marks"), (Probed(), "coordinates")])
async def test_every_page_is_played_to_its_end(
    tmp_path: Path, suite: Site, mode: Literal["coordinates", "set_of_marks"]
) -> None:
    context = ContextConfig(interaction_mode=mode, accessibility_tree=True)
    policy = marked if mode == "set_of_marks" else acts
    async with playing(tmp_path, policy, {"site": suite}, num_slots=2, context=context, size=SIZE) as bus:
        trajectories = await play(bus, [task(name, index) for index, name in enumerate(PAGES)])
        read = {each.task.website: (each, await records(bus, each)) for each in trajectories}
    assert {name: (each.outcome, each.error) for name, (each, _) in read.items()} == {
        f"site:{name}": (Outcome.ANSWERED, "") for name in PAGES
    }
    for name, (trajectory, messages) in read.items():
        assert trajectory.final_state is not None, name
        assert [len(value) <= VALUES for value in trajectory.final_state.values] == [True] * 3, name
        for message in (trajectory, *messages):
            for text in strings(msgspec.to_builtins(message, builtin_types=(bytes,))):
                assert text == valid(text), name
    observed = {
        name.removeprefix("site:"): [each for each in messages if isinstance(each, Observation)]
        for name, (_, messages) in read.items()
    }
    assert observed["label"][1].hit == f'button "{"a" * 58}…"'
    assert observed["long title"][0].title == "a" * 1999
    assert observed["title"][0].title.startswith("\ufffd [2J")
