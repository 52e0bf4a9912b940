"""One step of an episode: what was seen, what was answered, and what says so while it goes on."""

import enum
from typing import Literal

from schemas.ids import WorkerId
from schemas.messages.structs import Message, RecordRef, Struct
from schemas.ranges import (
    LEAST_TEMPERATURE,
    Amount,
    Attempt,
    Coordinate,
    Count,
    Episode,
    Logprob,
    Pixels,
    Share,
    Step,
    TokenId,
    Version,
    Worker,
)


class Element(Struct, frozen=True):
    """One interactive element of a set-of-marks observation; the box is in viewport pixels."""

    id: Count
    tag: str
    text: str
    box: tuple[Pixels, Pixels, Pixels, Pixels]
    """x, y, width, height."""


class Screenshot(Struct, frozen=True):
    """An encoded screenshot: as the browser encoded it, or with the marks of a set-of-marks observation drawn in."""

    data: bytes
    media_type: str
    width: Count
    height: Count


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


class ActionResult(Struct, frozen=True):
    """What an action came to; all empty when it was simply carried out."""

    error: str = ""
    hit: str = ""
    """What its input reached, as in `button "Save"`."""
    changes: tuple[str, ...] = ()
    """What it changed, as far as the browser can tell: a phrase each."""


class Observation(Message, frozen=True, tag="obs/1"):
    """What the policy sees at one step."""

    episode: Episode
    attempt: Attempt
    step: Step
    """From 0."""
    screenshot: Screenshot
    url: str
    title: str
    effect: ActionEffect = ActionEffect.NONE
    error: str = ""
    same_screenshot: bool = False
    """The screenshot equals the previous step's, pixel for pixel."""
    elements: tuple[Element, ...] = ()
    """What the numbers in a set-of-marks screenshot stand for."""
    accessibility_tree: str = ""
    """Empty unless the run shows it to the policy."""
    page_errors: tuple[str, ...] = ()
    """What failed on the pages since the observation before, a line each; empty unless the run shows it to the policy."""
    tabs: tuple[BrowserTab, ...] = ()
    """All open tabs in the order that `Action.tab` counts them; empty while there is one."""
    hit: str = ""
    """What the last action's input reached, as in `button "Save"`."""
    changes: tuple[str, ...] = ()
    """What it changed, as far as the browser can tell: a phrase each."""
    earlier_results: tuple[ActionResult, ...] = ()
    """What the actions before the last one came to, where the answer had several."""
    page_text: str = ""
    """Only behind a `read_page`."""
    oracle: tuple[Pixels, Pixels, Pixels, Pixels] | None = None
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
    point: tuple[Coordinate, Coordinate] | None = None
    """On the 0-1000 grid of the screenshot: x to the right, y down."""
    element: Count | None = None
    """Set-of-marks number instead of a point."""
    end_point: tuple[Coordinate, Coordinate] | None = None
    """Where a drag ends."""
    end_element: Count | None = None
    text: str = ""
    """Text to type, URL to navigate to or to open in a new tab, option to select (its label or value), or the answer."""
    enter: bool = True
    """Of a type: press Enter behind the text."""
    keys: tuple[str, ...] = ()
    """Of a press: chords one after the other, each of keys joined by `+`, as in `Control+a`."""
    direction: str = "down"
    """Of a scroll: up, down, left or right."""
    amount: Share = 1.0
    """Of a scroll: the share of the window's height, or width, that it goes."""
    tab: Count | None = None
    """Of switch_tab and close_tab: position among the observation's tabs, from 1; None: the active one."""
    num_lines: Count = 100
    """Of a read_page: lines of text from the top of the page."""
    seconds: Amount = 2.0
    """Of a wait."""


class VersionSpan(Struct, frozen=True):
    """Completion tokens `[start, end)` were sampled by one policy version."""

    start: Count
    end: Count
    version: Version


class TokenUsage(Struct, frozen=True):
    """Tokens that an answer took, counted by whoever sampled it."""

    prompt: Count
    """The cached ones included."""
    completion: Count
    cached: Count = 0


class StepRequest(Message, frozen=True, tag="act/1"):
    """The policy's answer to one observation: what to do, and everything needed to train on it."""

    episode: Episode
    attempt: Attempt
    step: Step
    action: Action
    parsed: bool
    """False: the output could not be parsed and `action` is the fallback, a wait of 2 s."""
    response: str
    """Raw text of the completion."""
    further: tuple[Action, ...] = ()
    """Carried out behind `action`, in this order, where an answer may have several calls."""
    thinking_ended: bool = True
    """False: the answer of a model that thinks never ended its thinking, whatever could be read in it."""
    num_left_out: Count = 0
    """Calls that are no action: they could not be read, stood behind the one that ends the episode, or were too many."""
    thought: str = ""
    """The one-line description of the action that older rounds are summarised by."""
    prompt_tokens: tuple[TokenId, ...] = ()
    """With image placeholders expanded, exactly as the engine saw them."""
    completion_tokens: tuple[TokenId, ...] = ()
    logprobs: tuple[Logprob, ...] = ()
    """Of the completion tokens, after temperature and truncation (the sampler's own distribution)."""
    versions: tuple[VersionSpan, ...] = ()
    screenshots: tuple[Step, ...] = ()
    """Steps of this attempt whose observations' screenshots stand in the prompt, in order."""
    num_dropped: Count = 0
    """Screenshots, and behind those turns, that a prompt of this configuration would have shown but for its length."""
    worker: Worker = WorkerId("")
    temperature: Amount = 1.0
    finish_reason: str = "stop"
    queued_s: Amount = 0.0
    generated_s: Amount = 0.0
    usage: TokenUsage | None = None
    """As an endpoint that hides its tokens counted them."""

    def contradiction(self) -> str:
        length = len(self.completion_tokens)
        if length and self.logprobs and len(self.logprobs) != length:
            return f"{length} completion_tokens with {len(self.logprobs)} logprobs"
        if self.versions and not _covers(self.versions, length):
            return f"the spans of versions do not cover the {length} completion_tokens one behind the other"
        if any(action.kind is ActionKind.ANSWER for action in self.actions[:-1]):
            return "an action stands behind the one that ends the episode"
        if max(self.screenshots, default=0) > self.step:
            return f"step {self.step} shows the screenshot of step {max(self.screenshots)}"
        if 0 < self.temperature < LEAST_TEMPERATURE:
            return f"temperature {self.temperature:g}, with which nobody samples"
        return ""

    @property
    def actions(self) -> tuple[Action, ...]:
        """All that the answer asks for, in order."""
        return (self.action, *self.further)

    @property
    def num_prompt(self) -> int:
        """Tokens, screenshots' included."""
        return self.usage.prompt if self.usage else len(self.prompt_tokens)

    @property
    def num_completion(self) -> int:
        return self.usage.completion if self.usage else len(self.completion_tokens)

    @property
    def screenshot_refs(self) -> tuple[RecordRef, ...]:
        """The observations that `screenshots` names."""
        return tuple(RecordRef(self.episode, self.attempt, "obs", step) for step in self.screenshots)


def _covers(spans: tuple[VersionSpan, ...], length: int) -> bool:
    end = 0
    for span in spans:
        if span.start != end or span.end <= span.start:
            return False
        end = span.end
    return end == length


class StepRefusal(Message, frozen=True, tag="refusal/1"):
    """Stands where an answer would, on the same subject and by the same rule: the policy cannot answer this observation,
    however often it is asked, and the episode ends. It holds nothing to train on."""

    episode: Episode
    attempt: Attempt
    step: Step
    reason: str
    worker: Worker = WorkerId("")


class StepWake(Message, frozen=True, tag="wake/1"):
    """Wakes a policy worker up; names the observation only, and losing it loses nothing."""

    episode: Episode
    attempt: Attempt
    step: Step
    observation_seq: Count
    """The observation's sequence in the stream of its shard: the answer is appended behind exactly this."""


class StepHeld(Message, frozen=True, tag="held/1"):
    """This policy worker has this step in hand: told to the slot that waits for it, when it was taken from the queue; and
    asked of the worker itself, who says whether it is so. Stored nowhere, and losing it loses nothing."""

    episode: Episode
    attempt: Attempt
    step: Step
    worker: Worker


class StepPhase(Message, frozen=True, tag="phase/1"):
    """An episode's step is at this phase, told by its browser worker to whoever watches: stored nowhere, and losing it loses
    nothing."""

    episode: Episode
    attempt: Attempt
    step: Step
    phase: Literal["deciding", "acting"]
    """deciding: its observation waits for the policy; acting: the accepted answer is carried out."""
    worker: Worker
    """The browser worker."""
    policy: Worker = WorkerId("")
    """Who answered."""
