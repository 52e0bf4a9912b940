"""The life of one episode as a state machine: what happened comes in, what to do next goes out. No I/O, and time is passed in.

    Open -> Observe -> Ask -> Act (-> Act ...) -> Observe -> Ask -> ... -> Finish

Invariants: `Ask` numbers steps from 0 without gaps; an output that could not be parsed uses up its step; whatever goes in, an
episode ends within its step limit and its time.
"""

from dataclasses import dataclass, replace

from browser_workers.blockages.recognition import sentence
from browser_workers.browser import PageState, Performed, View
from schemas.messages import (
    Action,
    ActionEffect,
    ActionKind,
    ActionResult,
    Blockage,
    Outcome,
    Screenshot,
    Split,
    StepRefusal,
    StepRequest,
    Task,
)

_BLANK_RETRIES_S = (0.1, 0.3, 1.0)
"""Pauses before a blank page is looked at again."""
_NAVIGATIONS = (ActionKind.NAVIGATE, ActionKind.GO_BACK)
_MAX_BEYOND_START = 3
"""Attempts to leave the first page backwards after which a training episode is over."""


@dataclass(frozen=True, slots=True)
class Open:
    """Open the first page."""


@dataclass(frozen=True, slots=True)
class Observe:
    """Look at the page, after a pause."""

    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ask:
    """Show this to the policy and wait for its answer."""

    step: int
    view: View
    performed: Performed
    effect: ActionEffect
    error: str
    same_screenshot: bool
    earlier_results: tuple[ActionResult, ...] = ()
    """Of the actions before the last one, where the answer had several."""


@dataclass(frozen=True, slots=True)
class Act:
    action: Action


@dataclass(frozen=True, slots=True)
class Finish:
    outcome: Outcome
    answer: str = ""
    reward: float | None = None
    """The environment's own, where there is one."""
    error: str = ""
    blockage: Blockage | None = None
    """What kept the agent out of the site."""
    last_look: Ask | None = None
    """What the last actions led to, for judges, where no policy sees it and the environment does not judge by itself."""


Decision = Open | Observe | Ask | Act | Finish


class Episode:
    """Feed it in the order of its decisions; `deadline` bounds every wait."""

    def __init__(self, task: Task, *, now: float) -> None:
        self._task = task
        self._step = 0
        self._screenshot: Screenshot | None = None
        self._url = ""
        self._further: tuple[Action, ...] = ()
        """Of the same answer, still to be carried out."""
        self._earlier: list[ActionResult] = []
        """What those before the latest one came to."""
        self._navigated = False
        """By one of them, or the latest."""
        self._navigation_failed = False
        """The newest navigation of the answer, or the first page's."""
        self._answer: str | None = None
        """That ends the episode."""
        self._page_text = ""
        """That one of them has read."""
        self._performed = Performed()
        self._num_blank = 0
        self._num_beyond_start = 0
        self._environment_judges = False
        self._reward: float | None = None
        self._earned: list[float] = []
        """By every step."""
        self.success: bool | None = None
        """As the environment says, where it says so."""
        self._blockage: Blockage | None = None
        """That ends the episode, once its page was looked at."""
        self.deadline = now + task.timeout_s
        self.num_unparsed = 0
        self.num_unparsed_last = 0
        """Behind the last answer that could be parsed."""
        self.thinking_ended_last = True
        self.navigation_error = ""
        """Why the first page could not be opened."""

    @property
    def step_rewards(self) -> tuple[float, ...]:
        """What the environment's reward rose by at each step; empty when it did so at the last step alone."""
        return tuple(self._earned) if any(self._earned[:-1]) else ()

    # what happened ----------------------------------------------------------------------------------------------------

    def opened(self, performed: Performed, *, now: float) -> Decision:
        """The first page is there; the episode's time begins."""
        self.deadline = now + self._task.timeout_s
        self._performed = performed
        self._navigation_failed = bool(performed.navigation_error)
        self.navigation_error = performed.navigation_error
        self._blockage = _own(performed.blockage)
        return Observe()

    def seen(self, view: View, *, now: float) -> Decision:
        if now >= self.deadline and self._blockage is None:
            return self.timed_out()
        self._read(view.state)
        if view.blank and self._num_blank < len(_BLANK_RETRIES_S):
            self._num_blank += 1
            return Observe(after_s=_BLANK_RETRIES_S[self._num_blank - 1])
        self._num_blank = 0
        look = self._look(view)
        self._screenshot, self._url = look.view.screenshot, view.state.url
        if self._blockage is not None:
            return self._kept_out(self._blockage, last_look=look)
        if self._answer is not None:
            return self._ended(last_look=look)
        if self._step < self._task.max_steps:
            return look
        return Finish(Outcome.STEP_LIMIT, reward=self._reward, last_look=look)

    def answered(self, step: StepRequest) -> Decision:
        self._step += 1
        self._earned.append(0.0)
        self.num_unparsed += not step.parsed
        self.num_unparsed_last = 0 if step.parsed else self.num_unparsed_last + 1
        self.thinking_ended_last = step.thinking_ended
        self._earlier.clear()
        self._navigated = self._navigation_failed = False
        self._page_text = ""
        if self.num_unparsed_last == self._task.max_unparsed > 0:
            number = self.num_unparsed_last
            error = "an answer could not be parsed" if number == 1 else f"{number} answers in a row could not be parsed"
            return Finish(Outcome.UNREADABLE, reward=self._reward, error=error)
        return self._carry_out(step.action, step.further)

    def refused(self, refusal: StepRefusal) -> Decision:
        """No policy can answer: there is nothing to wait for."""
        return Finish(
            Outcome.FAILED, reward=self._reward, error=f"the policy cannot answer step {refusal.step}: {refusal.reason}"
        )

    def acted(self, performed: Performed, state: PageState, *, now: float) -> Decision:
        self._performed = performed
        self._navigation_failed = self._navigation_failed or bool(performed.navigation_error)
        self._read(state)
        if state.environment is not None and state.environment.done:
            return Finish(Outcome.DONE, reward=self._reward)
        self._num_beyond_start += performed.beyond_start
        if self._task.split is Split.TRAIN and self._num_beyond_start >= _MAX_BEYOND_START:
            error = f"tried {_MAX_BEYOND_START} times to go back beyond the first page"
            return Finish(Outcome.DONE, reward=min(0.0, self._reward or 0.0), error=error)
        self._blockage = _own(performed.blockage)
        if now >= self.deadline:
            return self.timed_out()
        if self._further and self._blockage is None:
            self._earlier.append(ActionResult(error=_said(performed), hit=performed.hit, changes=performed.changes))
            self._page_text = performed.page_text or self._page_text
            return self._carry_out(self._further[0], self._further[1:])
        if self._step >= self._task.max_steps and self._environment_judges and self._blockage is None:
            return Finish(Outcome.STEP_LIMIT, reward=self._reward)
        return Observe()

    def timed_out(self) -> Finish:
        """Unless it was over in time, and only the last look was not taken any more."""
        if self._blockage is not None:
            return self._kept_out(self._blockage)
        if self._answer is not None:
            return self._ended()
        return Finish(Outcome.TIMED_OUT, reward=self._reward, error=f"not over after {self._task.timeout_s:g} s")

    # ------------------------------------------------------------------------------------------------------------------

    def _carry_out(self, action: Action, further: tuple[Action, ...]) -> Decision:
        self._further = further
        if action.kind is ActionKind.ANSWER:
            self._answer, self._performed = action.text, Performed()
            return Observe() if self._earlier and not self._environment_judges else self._ended()
        if action.kind in _NAVIGATIONS:
            self._navigated, self._navigation_failed = True, False
        return Act(action)

    def _ended(self, last_look: Ask | None = None) -> Finish:
        return Finish(Outcome.ANSWERED, answer=self._answer or "", reward=self._reward, last_look=last_look)

    def _kept_out(self, blockage: Blockage, last_look: Ask | None = None) -> Finish:
        return Finish(Outcome.BLOCKED, error=sentence(blockage), blockage=blockage, last_look=last_look)

    def _read(self, state: PageState) -> None:
        if (environment := state.environment) is None:
            return
        if self._earned:
            self._earned[-1] += environment.reward - (self._reward or 0.0)
        self._environment_judges = True
        self._reward, self.success = environment.reward, environment.success

    def _look(self, view: View) -> Ask:
        error = _said(self._performed)
        if view.blank and self._screenshot is not None and self._navigated:
            view = replace(view, screenshot=self._screenshot)
            error = _joined(error, "the page stayed blank; this is the screenshot from before")
        performed = self._performed
        if self._page_text and not performed.page_text:
            performed = replace(performed, page_text=self._page_text)
        same = self._screenshot is not None and view.screenshot.data == self._screenshot.data
        return Ask(
            step=self._step,
            view=view,
            performed=performed,
            effect=self._effect(changed=not same or view.state.url != self._url),
            error=error,
            same_screenshot=same,
            earlier_results=tuple(self._earlier),
        )

    def _effect(self, *, changed: bool) -> ActionEffect:
        if self._navigation_failed:
            return ActionEffect.NAVIGATION_FAILED
        if not self._step:
            return ActionEffect.NONE
        if self._performed.refused:
            return ActionEffect.REFUSED
        return ActionEffect.CHANGED if changed else ActionEffect.UNCHANGED


def _own(blockage: Blockage | None) -> Blockage | None:
    """A block of the site that the task is about; without any other a policy can do."""
    return None if blockage is None or blockage.elsewhere else blockage


def _said(performed: Performed) -> str:
    block = sentence(performed.blockage) if performed.blockage is not None else ""
    return _joined(performed.refused, performed.navigation_error, performed.notice, block)


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
