"""Whole episodes through a real nats-server and a real Chromium, with a scripted policy."""

import signal
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil
import pytest

from browser_workers.suites.demo import DemoSuite
from browser_workers.suites.shop.suite import ShopSuite
from bus import chain
from schemas.context_config import ContextConfig
from schemas.messages import Action, ActionKind, Observation, Outcome, Task
from tests import builders
from tests.support.browsers.page_plays import SIZE, SUBJECTS, Policy, play, playing

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
SUITES = {"demo": DemoSuite()}


def centre(observation: Observation) -> Action:
    """The oracle's click."""
    assert observation.oracle is not None
    x, y, width, height = observation.oracle
    return Action(kind=ActionKind.CLICK, point=((x + width / 2) / SIZE[0] * 1000, (y + height / 2) / SIZE[1] * 1000))


def corner(_: Observation) -> Action:
    return Action(kind=ActionKind.CLICK, point=(0, 0))


def episode(index: int, page: str = "click_button") -> Task:
    task = builders.task(f"t{index}", index=index)
    return msgspec.structs.replace(task, website=f"demo:{page}?seed={index}", demonstrate=True)


@pytest.mark.parametrize(("policy", "reward"), [(centre, 1.0), (corner, 0.0)])
async def test_the_page_itself_rewards_the_right_click(tmp_path: Path, policy: Policy, reward: float) -> None:
    async with playing(tmp_path, policy, SUITES) as bus:
        tasks = [*(episode(index) for index in range(12)), *(episode(index, "find_button") for index in range(100, 104))]
        trajectories = await play(bus, tasks)
        first = await chain.read(bus, SUBJECTS, trajectories[0].observations[0])
    assert {trajectory.episode for trajectory in trajectories} == {task.episode for task in tasks}
    assert [(each.outcome, each.environment_reward, each.num_steps) for each in trajectories] == [
        (Outcome.DONE, reward, 1)
    ] * 16
    assert first is not None
    assert isinstance(first.message, Observation)
    assert first.message.url.startswith("http://demo.millrace.test/")
    assert first.message.screenshot.data.startswith(b"\xff\xd8")


async def test_a_browser_killed_in_mid_episode(tmp_path: Path) -> None:
    kills = iter([True])

    def kill_then_click(observation: Observation) -> Action:
        if observation.step == 1 and next(kills, False):
            for child in psutil.Process().children(recursive=True):
                # Those whose browser was killed before them end by themselves.
                with suppress(psutil.NoSuchProcess):
                    if "chrom" in child.name():
                        child.send_signal(signal.SIGKILL)
        return centre(observation) if observation.step == 1 else Action(kind=ActionKind.WAIT, seconds=0.0)

    async with playing(tmp_path, kill_then_click, SUITES, num_slots=1) as bus:
        (failed,) = await play(bus, [episode(1)])
        (won,) = await play(bus, [episode(2)])
    assert (failed.outcome, failed.error) == (Outcome.FAILED, "the browser ended while it was in use")
    assert failed.num_observations == 2
    assert failed.num_steps >= 1
    assert (won.outcome, won.environment_reward) == (Outcome.DONE, 1.0)


async def test_all_calls_of_an_answer_are_carried_out_before_the_page_is_looked_at_again(tmp_path: Path) -> None:
    def numbered(observation: Observation, tag: str, text: str) -> int:
        return next(element.id for element in observation.elements if (element.tag, element.text) == (tag, text))

    def search(observation: Observation) -> Action | tuple[Action, ...]:
        match observation.step:
            case 0:
                return Action(kind=ActionKind.CLICK, element=numbered(observation, "button", "Close"))
            case 1:
                field = numbered(observation, "input[type=search]", "Search the shop")
                click, enter = Action(kind=ActionKind.CLICK, element=field), Action(kind=ActionKind.PRESS, keys=("Enter",))
                return click, Action(kind=ActionKind.TYPE, text="lamp", enter=False), enter
            case _:
                return Action(kind=ActionKind.CLICK, element=999), Action(kind=ActionKind.ANSWER, text="There are lamps.")

    context = ContextConfig(interaction_mode="set_of_marks", actions="extended", max_calls=3)
    task = msgspec.structs.replace(builders.task("lamps"), website="shop:home")
    async with playing(tmp_path, search, {"shop": ShopSuite()}, context=context, size=(1024, 768)) as bus:
        (ended,) = await play(bus, [task])
        third, last = [await chain.read(bus, SUBJECTS, ref) for ref in ended.observations[2:]]
    assert (ended.outcome, ended.answer, ended.num_steps) == (Outcome.ANSWERED, "There are lamps.", 3)
    assert third is not None
    assert isinstance(third.message, Observation)
    assert "lamp" in third.message.url
    clicked, typed = third.message.earlier_results
    assert "Search the shop" in clicked.hit
    assert not clicked.error
    assert not typed.error
    assert last is not None
    assert isinstance(last.message, Observation)
    assert (last.message.step, last.message.url, last.message.error) == (3, third.message.url, "")
    (refused,) = last.message.earlier_results
    assert "there is no element 999" in refused.error
