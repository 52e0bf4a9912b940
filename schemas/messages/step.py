"""One step of an episode: what was seen, what was answered, and what says so while it goes on."""

import enum
from typing import Literal

from schemas.ids import EpisodeId, PolicyVersion, WorkerId
from schemas.messages.structs import Message, RecordRef, Struct


class Element(Struct, frozen=True):
    """One interactive element of a set-of-marks observation; the box is in viewport pixels."""

    id: int
    tag: str
    text: str
    box: tuple[int, int, int, int]
    """x, y, width, height."""


class Picture(Struct, frozen=True):
    """An encoded screenshot: as the browser encoded it, or with the marks of a set-of-marks observation drawn in."""

    data: bytes
    media_type: str
    width: int
    height: int


class BrowserTab(Struct, frozen=True):
    title: str
    url: str
    active: bool = False


class ActionEffect(enum.Enum):
    """What the last action did, as far as the browser can tell."""

    NONE = "none"
    """There was no action yet."""
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    NAVIGATION_FAILED = "navigation_failed"
    REFUSED = "refused"
    """The action could not be carried out; `Observation.error` says why."""


class Observation(Message, frozen=True, tag="obs/1"):
    """What the policy sees at one step."""

    episode: EpisodeId
    attempt: int
    step: int
    """From 0."""
    picture: Picture
    url: str
    title: str
    effect: ActionEffect = ActionEffect.NONE
    error: str = ""
    same_picture: bool = False
    """The picture equals the previous step's, pixel for pixel."""
    elements: tuple[Element, ...] = ()
    """What the numbers in a set-of-marks picture stand for."""
    accessibility_tree: str = ""
    """Empty unless the run shows it to the policy."""
    tabs: tuple[BrowserTab, ...] = ()
    """All open tabs in the order that `Action.tab` counts them; empty while there is one."""
    hit: str = ""
    """What the last action's input reached, as in `button "Save"`."""
    changes: tuple[str, ...] = ()
    """What it changed, as far as the browser can tell: a phrase each."""
    page_text: str = ""
    """Only behind a `read_page`."""
    oracle: tuple[int, int, int, int] | None = None
    """Only in demonstrations: the box (x, y, width, height, viewport pixels) that the page's own scripted oracle clicks
    into. Never shown to a policy."""
    oracle_action: "Action | None" = None
    """Only in demonstrations: what the oracle does next, in coordinates; None: it clicks into the middle of its box."""


class ActionKind(enum.Enum):
    CLICK = "click"
    DOUBLE_CLICK = "double_click"
    RIGHT_CLICK = "right_click"
    DRAG = "drag"
    TYPE = "type"
    PRESS = "press"
    SELECT = "select"
    HOVER = "hover"
    SCROLL = "scroll"
    WAIT = "wait"
    GO_BACK = "go_back"
    NAVIGATE = "navigate"
    NEW_TAB = "new_tab"
    SWITCH_TAB = "switch_tab"
    CLOSE_TAB = "close_tab"
    READ_PAGE = "read_page"
    ANSWER = "answer"


class Action(Struct, frozen=True):
    """One parsed action. Which fields count depends on `kind`."""

    kind: ActionKind
    point: tuple[float, float] | None = None
    """On the 0-1000 grid of the picture: x to the right, y down."""
    element: int | None = None
    """Set-of-marks number instead of a point."""
    end_point: tuple[float, float] | None = None
    """Where a drag ends."""
    end_element: int | None = None
    text: str = ""
    """Text to type, URL to navigate to or to open in a new tab, option to select (its label or value), or the answer."""
    enter: bool = True
    """Of a type: press Enter behind the text."""
    keys: tuple[str, ...] = ()
    """Of a press: chords one after the other, each of keys joined by `+`, as in `Control+a`."""
    direction: str = "down"
    """Of a scroll: up, down, left or right."""
    tab: int | None = None
    """Of switch_tab and close_tab: position among the observation's tabs, from 1; None: the active one."""
    num_lines: int = 100
    """Of a read_page: lines of text from the top of the page."""
    seconds: float = 2.0
    """Of a wait."""


class VersionSpan(Struct, frozen=True):
    """Completion tokens `[start, end)` were sampled by one policy version."""

    start: int
    end: int
    version: PolicyVersion


class TokenUsage(Struct, frozen=True):
    """Tokens that an answer took, counted by whoever sampled it."""

    prompt: int
    """The cached ones included."""
    completion: int
    cached: int = 0


class StepRequest(Message, frozen=True, tag="act/1"):
    """The policy's answer to one observation: what to do, and everything needed to train on it."""

    episode: EpisodeId
    attempt: int
    step: int
    action: Action
    parsed: bool
    """False: the output could not be parsed and `action` is the fallback, a wait of 2 s."""
    response: str
    """Raw text of the completion."""
    thought: str = ""
    """The one-line description of the action that older rounds are summarised by."""
    prompt_tokens: tuple[int, ...] = ()
    """With picture placeholders expanded, exactly as the engine saw them."""
    completion_tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    """Of the completion tokens, after temperature and truncation (the sampler's own distribution)."""
    versions: tuple[VersionSpan, ...] = ()
    pictures: tuple[int, ...] = ()
    """Steps of this attempt whose observations' pictures stand in the prompt, in order."""
    worker: WorkerId = WorkerId("")
    temperature: float = 1.0
    finish_reason: str = "stop"
    queued_s: float = 0.0
    generated_s: float = 0.0
    usage: TokenUsage | None = None
    """As an endpoint that hides its tokens counted them."""

    @property
    def num_prompt(self) -> int:
        """Tokens, pictures' included."""
        return self.usage.prompt if self.usage else len(self.prompt_tokens)

    @property
    def num_completion(self) -> int:
        return self.usage.completion if self.usage else len(self.completion_tokens)

    @property
    def picture_refs(self) -> tuple[RecordRef, ...]:
        """The observations that `pictures` names."""
        return tuple(RecordRef(self.episode, self.attempt, "obs", step) for step in self.pictures)


class StepRefusal(Message, frozen=True, tag="refusal/1"):
    """Stands where an answer would, on the same subject and by the same rule: the policy cannot answer this observation,
    however often it is asked, and the episode ends. It holds nothing to train on."""

    episode: EpisodeId
    attempt: int
    step: int
    reason: str
    worker: WorkerId = WorkerId("")


class StepWake(Message, frozen=True, tag="wake/1"):
    """Wakes a policy worker up; names the observation only, and losing it loses nothing."""

    episode: EpisodeId
    attempt: int
    step: int
    observation_seq: int
    """The observation's sequence in the stream of its shard: the answer is appended behind exactly this."""


class StepHeld(Message, frozen=True, tag="held/1"):
    """This policy worker has this step in hand: told to the slot that waits for it, when it was taken from the queue; and
    asked of the worker itself, who says whether it is so. Stored nowhere, and losing it loses nothing."""

    episode: EpisodeId
    attempt: int
    step: int
    worker: WorkerId


class StepPhase(Message, frozen=True, tag="phase/1"):
    """An episode's step is at this phase, told by its browser worker to whoever watches: stored nowhere, and losing it loses
    nothing."""

    episode: EpisodeId
    attempt: int
    step: int
    phase: Literal["deciding", "acting"]
    """deciding: its observation waits for the policy; acting: the accepted answer is carried out."""
    worker: WorkerId
    """The browser worker."""
    policy: WorkerId = WorkerId("")
    """Who answered."""
