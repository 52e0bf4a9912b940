"""Defines the port of browsers. `browser_workers.chromium.browser` provides it; tests may script it.

Values only: how an episode's first page is had (`Opening`), what a page looks like (`PageState`, `Screenshot`), what an action
came to (`Performed`). Every failure that ends an episode is a `BrowserError`; everything else is said in `Performed`.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from browser_workers.har.log import NetworkLog
from browser_workers.site import Site
from schemas.errors import BrowserError
from schemas.messages import Action, Blockage, BrowserTab, Element, Screenshot

Box = tuple[int, int, int, int]
"""x, y, width, height in viewport pixels."""


class Solution(Protocol):
    """A scripted way through a task whose page has no oracle of its own. Step 0 is the first."""

    def expression(self, step: int) -> str:
        """JavaScript that brings the step's element into view and says where it is."""
        ...

    def action(self, step: int, located: str) -> Action | None:
        """What the step does, with what its expression gave; None where it cannot be done."""
        ...


@dataclass(frozen=True, slots=True)
class Opening:
    """How an episode begins, as its task suite resolved it."""

    url: str
    probe: str = "null"
    """JavaScript expression for the environment's own state: null, or an object with done, reward, success, target, action
    and utterance."""
    site: Site | None = None
    """Answers for its origin: nothing is looked up, and no request to it reaches a network."""
    keeps_no_state: bool = False
    """The site's documents use no cookies, storage, workers or windows: while an episode stays on them, its tab may serve the
    next episode after being wiped. Everywhere else an episode has a fresh context."""
    quiet_s: float = 0.15
    """An action that made the page load something is over once the network was idle for so long; 0: every action is, as soon
    as the page has handled the input."""
    feedback: bool = True
    """Whether it is found out what an action hit and changed, which costs a round trip per step."""
    solution: Solution | None = None
    """What demonstrations follow."""
    episode: str = ""
    """Whose it is, for whoever provides the browser."""
    network: NetworkLog | None = None
    """Is told what the episode's pages send and get; None: nobody is."""


@dataclass(frozen=True, slots=True)
class EnvironmentState:
    """What the page itself says about the episode."""

    done: bool
    reward: float
    """What the episode is worth if it ends now: giving up may not be worth more than failing, or groups learn to give up."""
    target: Box | None = None
    """Where the scripted oracle clicks."""
    utterance: str = ""
    """What the page asks for."""
    action: Action | None = None
    """What the scripted oracle does next, in coordinates; None: a click into `target`."""
    success: bool | None = None
    """Whether the task is solved, whatever its way cost; None: it is with a reward of 1."""


@dataclass(frozen=True, slots=True)
class PageState:
    url: str
    title: str
    environment: EnvironmentState | None = None
    tabs: tuple[BrowserTab, ...] = ()
    """All open tabs; empty while there is one."""


@dataclass(frozen=True, slots=True)
class View:
    """What is there to observe."""

    screenshot: Screenshot
    state: PageState
    blank: bool = False
    """Every pixel is nearly white."""
    elements: tuple[Element, ...] = ()
    """Set of marks: what the numbers in the screenshot stand for."""
    accessibility_tree: str = ""
    """Where the run shows it."""
    page_errors: tuple[str, ...] = ()
    """Where the run shows them: what failed on the pages since the view before the last action, a line each."""


@dataclass(frozen=True, slots=True)
class Performed:
    """What an action came to, in words for the policy; all empty when it was simply carried out."""

    refused: str = ""
    beyond_start: bool = False
    """It was a way back from the episode's first page."""
    navigation_error: str = ""
    notice: str = ""
    """Something happened on the side: a dialog was dismissed, a window opened."""
    hit: str = ""
    """What the input reached, as in `button "Save"`."""
    changes: tuple[str, ...] = ()
    """What it changed, a phrase each."""
    page_text: str = ""
    """What a read_page has read."""
    blockage: Blockage | None = None
    """The page that is shown now keeps the agent out."""
    num_documents: int = 0
    """That were shown since the action began."""


class Session(Protocol):
    """The browser side of one episode. Every method raises `PageFailed` or `BrowserLost`, each within its deadline."""

    async def open(self) -> Performed: ...
    async def perform(self, action: Action) -> Performed:
        """Carries the action out and waits until its effects have settled."""
        ...

    async def state(self) -> PageState: ...
    async def view(self) -> View: ...
    async def page_values(self, expressions: Sequence[str]) -> tuple[str, ...]:
        """The values of JavaScript expressions in the active page as text; empty where one fails or is null."""
        ...

    @property
    def egress(self) -> str:
        """As `Trajectory.egress`."""
        ...

    def has_other_egress(self) -> bool:
        """Whether another episode on the same site could come by another."""
        ...

    async def blockage(self) -> Blockage | None:
        """What keeps the agent out by now."""
        ...

    async def pass_over_blockage(self) -> None:
        """What is shown now counts as a block no more, whatever it looks like."""
        ...

    async def wait_failed(self) -> BrowserError:
        """Returns as soon as the page or the browser is gone, whether anybody is using it or not."""
        ...


class Browser(Protocol):
    def session(self, opening: Opening) -> AbstractAsyncContextManager[Session]:
        """A page that shares nothing with other episodes. Raises `BrowserError` when none can be had."""
        ...
