"""The boundary at which words of pages enter: whatever a session says is valid, bounded text from here on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from browser_workers.browser import EnvironmentState, PageState, Performed, Session, View
from schemas.errors import BrowserError
from schemas.messages import Action, Blockage, BrowserTab, Element
from schemas.text import valid

_ADDRESS = partial(valid, most=2_000)
"""Of an address or a title."""
_PHRASE = partial(valid, most=300)
"""Of an element, or of what an action has reached or changed."""
_SENTENCES = partial(valid, most=16_000)
"""Of what there is to say of an action: eight notices and more, of up to 1,500 characters."""
_PAGE = partial(valid, most=40_000)
_VALUE = partial(valid, most=100_000)
"""Of an expression."""
_MOST_CHANGES = 50
_MOST_TABS = 50
_MOST_ERRORS = 50
_MOST_ELEMENTS = 1_000


@dataclass(frozen=True, slots=True)
class Worded:
    """A session whose words are fit for records. Satisfies `browser_workers.browser.Session`."""

    session: Session

    async def open(self) -> Performed:
        return _performed(await self.session.open())

    async def perform(self, action: Action) -> Performed:
        return _performed(await self.session.perform(action))

    async def state(self) -> PageState:
        return _state(await self.session.state())

    async def view(self) -> View:
        view = await self.session.view()
        return replace(
            view,
            state=_state(view.state),
            elements=tuple(_element(each) for each in view.elements[:_MOST_ELEMENTS]),
            accessibility_tree=_PAGE(view.accessibility_tree),
            page_errors=tuple(map(_PHRASE, view.page_errors[:_MOST_ERRORS])),
        )

    async def page_values(self, expressions: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(_VALUE, await self.session.page_values(expressions)))

    @property
    def egress(self) -> str:
        return self.session.egress

    def has_other_egress(self) -> bool:
        return self.session.has_other_egress()

    async def blockage(self) -> Blockage | None:
        return _blockage(await self.session.blockage())

    async def pass_over_blockage(self) -> None:
        await self.session.pass_over_blockage()

    async def wait_failed(self) -> BrowserError:
        return await self.session.wait_failed()


def _performed(said: Performed) -> Performed:
    return replace(
        said,
        refused=_SENTENCES(said.refused),
        navigation_error=_SENTENCES(said.navigation_error),
        notice=_SENTENCES(said.notice),
        hit=_PHRASE(said.hit),
        changes=tuple(map(_PHRASE, said.changes[:_MOST_CHANGES])),
        page_text=_PAGE(said.page_text),
        blockage=_blockage(said.blockage),
    )


def _blockage(found: Blockage | None) -> Blockage | None:
    return None if found is None else msgspec.structs.replace(found, site=_PHRASE(found.site))


def _state(state: PageState) -> PageState:
    return replace(
        state,
        url=_ADDRESS(state.url),
        title=_ADDRESS(state.title),
        environment=_environment(state.environment) if state.environment is not None else None,
        tabs=tuple(
            BrowserTab(title=_ADDRESS(tab.title), url=_ADDRESS(tab.url), active=tab.active) for tab in state.tabs[:_MOST_TABS]
        ),
    )


def _environment(state: EnvironmentState) -> EnvironmentState:
    action = state.action
    if action is not None:
        action = msgspec.structs.replace(
            action, text=_VALUE(action.text), keys=tuple(map(_PHRASE, action.keys)), direction=_PHRASE(action.direction)
        )
    return replace(state, utterance=_PAGE(state.utterance), action=action)


def _element(element: Element) -> Element:
    return Element(id=element.id, tag=_PHRASE(element.tag), text=_PHRASE(element.text), box=element.box)
