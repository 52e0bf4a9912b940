"""The episode state machine, by value."""

from dataclasses import replace as with_

import msgspec
import pytest

from browser_workers.browser import EnvironmentState, PageState, Performed, View
from browser_workers.episode import Act, Ask, Episode, Finish, Observe
from schemas.messages import Action, ActionEffect, ActionKind, ActionResult, Outcome, Screenshot, Split, StepRequest, Task
from tests import builders

CLICK = Action(kind=ActionKind.CLICK, point=(500, 500))
BACK = Action(kind=ActionKind.GO_BACK)
WEB = PageState(url="https://site.test/", title="a page")
PLAYING = with_(WEB, environment=EnvironmentState(done=False, reward=0.0))
WON = with_(WEB, environment=EnvironmentState(done=True, reward=1.0))


def view(data: bytes = b"one", *, state: PageState = WEB, blank: bool = False) -> View:
    return View(screenshot=Screenshot(data=data, media_type="image/jpeg", width=2, height=2), state=state, blank=blank)


def answer(action: Action, *, parsed: bool = True) -> StepRequest:
    return msgspec.structs.replace(builders.step_request(builders.task()), action=action, parsed=parsed)


def started(task: Task | None = None, first: View | None = None) -> tuple[Episode, Ask]:
    episode = Episode(task or builders.task(), now=0.0)
    assert episode.opened(Performed(), now=1.0) == Observe()
    ask = episode.seen(first or view(), now=1.0)
    assert isinstance(ask, Ask)
    return episode, ask


def act(
    episode: Episode, action: Action, performed: Performed | None = None, state: PageState = WEB, now: float = 2.0
) -> object:
    assert episode.answered(answer(action)) == Act(action)
    return episode.acted(performed or Performed(), state, now=now)


def asked(decision: object) -> Ask:
    assert isinstance(decision, Ask)
    return decision


def test_the_first_look_has_no_effect() -> None:
    _, ask = started()
    assert (ask.step, ask.effect, ask.error, ask.same_screenshot) == (0, ActionEffect.NONE, "", False)


def test_a_failed_first_navigation_is_said() -> None:
    episode = Episode(builders.task(), now=0.0)
    episode.opened(Performed(navigation_error="no such host"), now=0.0)
    ask = asked(episode.seen(view(), now=0.0))
    assert (ask.effect, ask.error) == (ActionEffect.NAVIGATION_FAILED, "no such host")


def test_effects_are_read_from_screenshots_and_addresses() -> None:
    episode, _ = started()
    assert act(episode, CLICK) == Observe()
    same = asked(episode.seen(view(), now=3.0))
    assert (same.step, same.effect, same.same_screenshot) == (1, ActionEffect.UNCHANGED, True)
    act(episode, CLICK)
    moved = asked(episode.seen(view(state=with_(WEB, url="https://site.test/#2")), now=3.0))
    assert (moved.effect, moved.same_screenshot) == (ActionEffect.CHANGED, True)


def test_a_different_screenshot_is_a_change() -> None:
    episode, _ = started()
    act(episode, CLICK, Performed(notice="a dialog was dismissed"))
    ask = asked(episode.seen(view(b"two"), now=3.0))
    assert (ask.effect, ask.error, ask.same_screenshot) == (ActionEffect.CHANGED, "a dialog was dismissed", False)


def test_a_refused_action_says_why() -> None:
    episode, _ = started()
    act(episode, CLICK, Performed(refused="click needs a coordinate"))
    ask = asked(episode.seen(view(), now=3.0))
    assert (ask.effect, ask.error) == (ActionEffect.REFUSED, "click needs a coordinate")


def test_the_environment_ends_the_episode_without_another_look() -> None:
    episode, _ = started(first=view(state=PLAYING))
    assert act(episode, CLICK, state=WON) == Finish(Outcome.DONE, reward=1.0)


def test_an_answer_ends_the_episode_with_what_the_environment_says() -> None:
    episode, _ = started()
    assert episode.answered(answer(Action(kind=ActionKind.ANSWER, text="42"))) == Finish(Outcome.ANSWERED, answer="42")
    episode, _ = started(first=view(state=PLAYING))
    assert episode.answered(answer(Action(kind=ActionKind.ANSWER))) == Finish(Outcome.ANSWERED, reward=0.0)


def test_the_step_limit_ends_with_a_last_look_for_judges() -> None:
    episode, _ = started(builders.task(max_steps=1))
    assert act(episode, CLICK) == Observe()
    end = episode.seen(view(b"two"), now=3.0)
    assert isinstance(end, Finish)
    assert end.outcome is Outcome.STEP_LIMIT
    assert end.last_look is not None
    assert (end.last_look.step, end.last_look.effect) == (1, ActionEffect.CHANGED)


def test_the_step_limit_needs_no_last_look_where_the_environment_judges() -> None:
    episode, _ = started(builders.task(max_steps=1), view(state=PLAYING))
    assert act(episode, CLICK, state=PLAYING) == Finish(Outcome.STEP_LIMIT, reward=0.0)


def test_an_unparsed_output_uses_up_a_step() -> None:
    episode, _ = started(builders.task(max_steps=1), view(state=PLAYING))
    wait = Action(kind=ActionKind.WAIT)
    assert episode.answered(answer(wait, parsed=False)) == Act(wait)
    assert episode.num_unparsed == 1
    assert isinstance(episode.acted(Performed(), PLAYING, now=2.0), Finish)


def test_the_first_unreadable_answer_may_end_it() -> None:
    episode, _ = started(msgspec.structs.replace(builders.task(max_steps=9), max_unparsed=1), view(state=PLAYING))
    end = episode.answered(answer(Action(kind=ActionKind.WAIT), parsed=False))
    assert end == Finish(Outcome.UNREADABLE, reward=0.0, error="an answer could not be parsed")


def test_so_many_unreadable_answers_in_a_row_end_it() -> None:
    task = msgspec.structs.replace(builders.task(max_steps=9), max_unparsed=2)
    episode, _ = started(task, view(state=PLAYING))
    wait = Action(kind=ActionKind.WAIT)
    for parsed in (False, True, False):
        assert episode.answered(answer(wait, parsed=parsed)) == Act(wait)
        episode.acted(Performed(), PLAYING, now=2.0)
    end = episode.answered(answer(wait, parsed=False))
    assert end == Finish(Outcome.UNREADABLE, reward=0.0, error="2 answers in a row could not be parsed")
    assert (episode.num_unparsed, episode.num_unparsed_last) == (3, 2)


def test_whether_the_last_answer_ended_its_thinking() -> None:
    episode, _ = started(builders.task(max_steps=9), view(state=PLAYING))
    assert episode.thinking_ended_last
    for ended in (False, True, False):
        episode.answered(msgspec.structs.replace(answer(Action(kind=ActionKind.WAIT)), thinking_ended=ended))
        assert episode.thinking_ended_last == ended
        episode.acted(Performed(), PLAYING, now=2.0)


def test_time_runs_from_the_first_page() -> None:
    task = msgspec.structs.replace(builders.task(), timeout_s=10.0)
    episode = Episode(task, now=0.0)
    episode.opened(Performed(), now=100.0)
    assert episode.deadline == 110.0
    assert isinstance(episode.seen(view(), now=109.0), Ask)
    end = act(episode, CLICK, now=110.0)
    assert isinstance(end, Finish)
    assert (end.outcome, end.error) == (Outcome.TIMED_OUT, "not over after 10 s")


BEYOND = Performed(refused="this is the first page", beyond_start=True)


def test_the_third_way_back_beyond_the_start_ends_a_training_episode_with_nothing() -> None:
    episode, _ = started(builders.task(max_steps=9))
    assert act(episode, BACK, BEYOND) == Observe()
    assert asked(episode.seen(view(), now=2.0)).effect is ActionEffect.REFUSED
    assert act(episode, BACK, BEYOND) == Observe()
    end = act(episode, BACK, BEYOND)
    assert isinstance(end, Finish)
    assert (end.outcome, end.reward) == (Outcome.DONE, 0.0)
    assert "3 times" in end.error


@pytest.mark.parametrize("worth", [-1.0, 0.0, 0.5])
def test_leaving_never_pays_more_than_staying(worth: float) -> None:
    state = with_(WEB, environment=EnvironmentState(done=False, reward=worth))
    episode, _ = started(builders.task(max_steps=9), view(state=state))
    ends = [act(episode, BACK, BEYOND, state=state) for _ in range(3)]
    assert isinstance(ends[-1], Finish)
    assert ends[-1].reward == min(worth, 0.0)


def test_evaluation_episodes_go_on() -> None:
    episode, _ = started(builders.task(split=Split.EVAL, max_steps=9))
    assert [act(episode, BACK, BEYOND) for _ in range(4)] == [Observe()] * 4


def test_a_blank_page_is_looked_at_again() -> None:
    episode = Episode(builders.task(), now=0.0)
    episode.opened(Performed(), now=0.0)
    looks = [episode.seen(view(blank=True), now=0.0) for _ in range(3)]
    assert looks == [Observe(0.1), Observe(0.3), Observe(1.0)]
    assert isinstance(episode.seen(view(b"painted"), now=0.0), Ask)


def test_a_page_that_stays_blank_after_a_navigation_leaves_the_screenshot_before() -> None:
    episode, first = started()
    act(episode, Action(kind=ActionKind.NAVIGATE, text="https://other.test"))
    for _ in range(3):
        assert isinstance(episode.seen(view(b"white", blank=True), now=2.0), Observe)
    ask = asked(episode.seen(view(b"white", blank=True), now=2.0))
    assert ask.view.screenshot == first.view.screenshot
    assert ask.same_screenshot
    assert "stayed blank" in ask.error


def test_a_page_that_became_blank_by_a_click_is_shown_as_it_is() -> None:
    episode, _ = started()
    act(episode, CLICK)
    for _ in range(3):
        episode.seen(view(b"white", blank=True), now=2.0)
    assert asked(episode.seen(view(b"white", blank=True), now=2.0)).view.screenshot.data == b"white"


# rewards of steps -----------------------------------------------------------------------------------------------------


def stands(reward: float, *, done: bool = False, success: bool | None = None) -> PageState:
    return with_(WEB, environment=EnvironmentState(done=done, reward=reward, success=success))


def test_a_step_earns_what_the_reward_rose_by() -> None:
    episode, _ = started(first=view(state=stands(0.0)))
    act(episode, CLICK, state=stands(0.25))
    # What came late is still the step's.
    asked(episode.seen(view(b"two", state=stands(0.5)), now=2.0))
    act(episode, CLICK, state=stands(0.375))
    asked(episode.seen(view(b"three", state=stands(0.375)), now=2.0))
    assert act(episode, CLICK, state=stands(1.25, done=True, success=True)) == Finish(Outcome.DONE, reward=1.25)
    assert episode.step_rewards == (0.5, -0.125, 0.875)
    assert episode.success is True


def test_what_was_there_before_the_first_step_was_earned_by_none() -> None:
    episode, _ = started(first=view(state=stands(0.5)))
    act(episode, CLICK, state=stands(0.75))
    asked(episode.seen(view(b"two", state=stands(0.75)), now=2.0))
    act(episode, CLICK, state=stands(0.75, done=True, success=False))
    assert (episode.step_rewards, episode.success) == ((0.25, 0.0), False)


def test_what_the_last_step_alone_earned_needs_no_list() -> None:
    episode, _ = started(first=view(state=PLAYING))
    act(episode, CLICK, state=PLAYING)
    asked(episode.seen(view(b"two", state=PLAYING), now=2.0))
    act(episode, CLICK, state=WON)
    assert (episode.step_rewards, episode.success) == ((), None)


def test_a_page_without_an_environment_earns_nothing() -> None:
    episode, _ = started(first=view(state=stands(0.0)))
    act(episode, CLICK, state=stands(0.5))
    asked(episode.seen(view(b"two", state=WEB), now=2.0))
    act(episode, CLICK, state=stands(1.0, done=True))
    assert episode.step_rewards == (0.5, 0.5)


def test_a_trajectory_has_no_more_rewards_than_steps() -> None:
    ended = builders.trajectory(builders.task(), num_steps=1)
    assert msgspec.structs.replace(ended, environment_step_rewards=(1.0,)).contradiction() == ""
    assert "2 environment_step_rewards" in msgspec.structs.replace(ended, environment_step_rewards=(0.5, 0.5)).contradiction()


def several(*actions: Action) -> StepRequest:
    return msgspec.structs.replace(answer(actions[0]), further=actions[1:])


TYPE = Action(kind=ActionKind.TYPE, text="tea")
READ = Action(kind=ActionKind.READ_PAGE)


def test_the_actions_of_an_answer_are_carried_out_in_order_and_looked_at_once() -> None:
    episode, _ = started()
    assert episode.answered(several(CLICK, READ, TYPE)) == Act(CLICK)
    assert episode.acted(Performed(hit="field"), WEB, now=2.0) == Act(READ)
    assert episode.acted(Performed(page_text="a line"), WEB, now=2.0) == Act(TYPE)
    assert episode.acted(Performed(changes=("value",)), WEB, now=2.0) == Observe()
    ask = asked(episode.seen(view(b"two"), now=3.0))
    assert (ask.step, ask.performed.changes, ask.performed.page_text) == (1, ("value",), "a line")
    assert ask.earlier_results == (ActionResult(hit="field"), ActionResult())
    assert act(episode, CLICK) == Observe()
    assert asked(episode.seen(view(b"three"), now=3.0)).earlier_results == ()


def test_a_refused_action_does_not_keep_the_next_from_being_done() -> None:
    episode, _ = started()
    assert episode.answered(several(CLICK, TYPE)) == Act(CLICK)
    assert episode.acted(Performed(refused="nothing is there"), WEB, now=2.0) == Act(TYPE)
    episode.acted(Performed(), WEB, now=2.0)
    ask = asked(episode.seen(view(), now=3.0))
    assert (ask.effect, ask.earlier_results) == (ActionEffect.UNCHANGED, (ActionResult(error="nothing is there"),))


def answers_behind(*actions: Action, at: View | None = None) -> Episode:
    """An episode whose answer has so many actions, and then ends it."""
    episode, _ = started(builders.task(max_steps=1), at)
    assert episode.answered(several(*actions, Action(kind=ActionKind.ANSWER, text="42"))) == Act(actions[0])
    return episode


def test_an_answer_behind_other_actions_ends_the_episode_with_a_look_at_what_they_led_to() -> None:
    episode = answers_behind(CLICK, READ)
    assert episode.acted(Performed(hit="button"), WEB, now=2.0) == Act(READ)
    assert episode.acted(Performed(page_text="a line", notice="slow"), WEB, now=2.0) == Observe()
    assert episode.seen(view(b"white", blank=True), now=2.0) == Observe(0.1)
    end = episode.seen(view(b"two"), now=2.0)
    assert isinstance(end, Finish)
    assert (end.outcome, end.answer) == (Outcome.ANSWERED, "42")
    look = asked(end.last_look)
    assert (look.step, look.effect, look.error, look.performed) == (1, ActionEffect.CHANGED, "", Performed(page_text="a line"))
    assert look.earlier_results == (ActionResult(hit="button"), ActionResult(error="slow"))


def test_nobody_looks_again_where_the_environment_judges() -> None:
    episode = answers_behind(CLICK, at=view(state=PLAYING))
    assert episode.acted(Performed(), PLAYING, now=2.0) == Finish(Outcome.ANSWERED, answer="42", reward=0.0)


def test_an_answer_that_came_in_time_stands_whether_or_not_there_was_time_to_look() -> None:
    episode = answers_behind(CLICK)
    assert episode.acted(Performed(), WEB, now=2.0) == Observe()
    assert episode.seen(view(b"two"), now=1e9) == episode.timed_out() == Finish(Outcome.ANSWERED, answer="42")
    late = answers_behind(CLICK).acted(Performed(), WEB, now=1e9)
    assert isinstance(late, Finish)
    assert late.outcome is Outcome.TIMED_OUT


NAVIGATE = Action(kind=ActionKind.NAVIGATE, text="https://other.test")
UNREACHED = Performed(navigation_error="no such host")


def seen_behind(*done: tuple[Action, Performed], blank: bool = False) -> tuple[Ask, Ask]:
    """What is seen behind several actions, and behind a click after that."""
    episode, _ = started()
    decision = episode.answered(several(*(action for action, _ in done)))
    for action, performed in done:
        assert decision == Act(action)
        decision = episode.acted(performed, WEB, now=2.0)
    while decision == Observe() or (blank and isinstance(decision, Observe)):
        decision = episode.seen(view(b"white", blank=blank), now=2.0)
    first = asked(decision)
    act(episode, CLICK)
    return first, asked(episode.seen(view(b"two"), now=3.0))


WAIT = Action(kind=ActionKind.WAIT)


def test_a_navigation_failed_whatever_is_done_behind_it_in_the_same_answer() -> None:
    first, then = seen_behind((NAVIGATE, UNREACHED), (WAIT, Performed()))
    assert (first.effect, then.effect) == (ActionEffect.NAVIGATION_FAILED, ActionEffect.CHANGED)
    first, _ = seen_behind((CLICK, UNREACHED), (WAIT, Performed()))
    assert first.effect is ActionEffect.NAVIGATION_FAILED
    first, _ = seen_behind((NAVIGATE, UNREACHED), (NAVIGATE, Performed()), (WAIT, Performed()))
    assert first.effect is ActionEffect.CHANGED, "the next one did not"


def test_a_page_that_a_navigation_left_blank_is_one_whatever_is_done_behind_it() -> None:
    first, _ = seen_behind((NAVIGATE, Performed()), (WAIT, Performed()), blank=True)
    assert (first.view.screenshot.data, first.same_screenshot) == (b"one", True)
    assert "stayed blank" in first.error
    first, _ = seen_behind((CLICK, Performed()), (WAIT, Performed()), blank=True)
    assert first.view.screenshot.data == b"white"


def test_nothing_more_is_done_once_the_environment_is_done_or_time_is_up() -> None:
    episode, _ = started(first=view(state=PLAYING))
    episode.answered(several(CLICK, TYPE))
    assert episode.acted(Performed(), WON, now=2.0) == Finish(Outcome.DONE, reward=1.0)
    episode, _ = started()
    episode.answered(several(CLICK, TYPE))
    late = episode.acted(Performed(), WEB, now=1e9)
    assert isinstance(late, Finish)
    assert late.outcome is Outcome.TIMED_OUT
