"""Published recipes on a few episodes: prompts, samples, rewards and losses, against tables worked out by hand.

Rewards of a group of five are 1, 0, 0, 1, 0: mean 0.4, unbiased deviation sqrt(1.2 / 4) = 0.547723. Of a group of eight, one
of them 1: mean 0.125, deviation sqrt((0.875^2 + 7 * 0.125^2) / 7) = 0.353553.
"""

from dataclasses import replace
from math import exp
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from agents.action_space import ActionSpace
from agents.context import Round, build_window
from agents.earlier_answers import ends_thinking
from agents.parsing import parse_response
from bus import chain
from bus.memory import MemoryBus
from judges.judge import scored
from judges.shaping import shaped
from ops.config.loading import load_config
from schemas.config import Config
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import (
    ActionEffect,
    ActionResult,
    Observation,
    Outcome,
    Screenshot,
    StepRequest,
    Task,
    Trajectory,
    VersionSpan,
)
from tests import builders
from tests.support.training.learning_world import ACTION, Recorder, train
from tests.support.training.ragged import targets as token_targets
from tests.support.training.ragged import text_sample
from tests.support.training.trainer_world import SUBJECTS, judge, member_task
from trainer.items import Item, targets_of
from trainer.objective.policy_objective import PolicyObjective
from trainer.token_losses import Outputs

pytestmark = pytest.mark.anyio
OPENWEBRL, ASYNC_WEBRL, WEBGYM = (load_config(name) for name in ("openwebrl", "async_webrl", "webgym"))


# prompts --------------------------------------------------------------------------------------------------------------

_SAID = (
    "<think>\nThe search field is empty.\n</think>\n\n"
    '<tool_call>\n{"name": "click", "arguments": {"point_2d": [500, 40]}}\n</tool_call>\n'
    '<tool_call>\n{"name": "write", "arguments": {"message": "lamp"}}\n</tool_call>',
    'Lamps are listed.\n</think>\n\n<tool_call>\n{"name": "scroll", "arguments": {"direction": "down"}}\n</tool_call>',
)
_PLAIN = ("Action: Click the field.\n<tool_call>\n{}\n</tool_call>", "Action: Scroll down.\n<tool_call>\n{}\n</tool_call>")


def _prompt(config: Config, said: tuple[str, ...]) -> list[tuple[str, list[str]]]:
    """At the third step; screenshots by their steps."""
    task, space = builders.task(), ActionSpace.of(config.context_config)
    rounds = []
    for step, text in enumerate(said):
        read = parse_response(text, space, max_calls=config.context_config.max_calls)
        answer = msgspec.structs.replace(
            builders.step_request(task, step), response=text, action=read.action, further=read.further, thought=read.thought
        )
        rounds.append(Round(_seen(task, step), answer))
    window = build_window(task, rounds, _seen(task, len(said)), context=config.context_config, model=config.model_config)
    return [
        (
            message.role,
            [f"screenshot {part.data.decode()}" if isinstance(part, Screenshot) else part for part in message.content],
        )
        for message in window.messages[1:]
    ]


def _seen(task: Task, step: int) -> Observation:
    seen = builders.observation(task, step, data=str(step).encode())
    changes = {} if step != 1 else {"hit": "searchbox", "earlier_results": (ActionResult(hit='searchbox "Find"'),)}
    effect = ActionEffect.CHANGED if step else ActionEffect.NONE
    return msgspec.structs.replace(seen, title=f"Page {step}", url=f"http://shop/{step}", effect=effect, **changes)


def test_openwebrl_shows_one_screenshot_and_every_earlier_turn_whole() -> None:
    assert _prompt(OPENWEBRL, _SAID) == [
        ("user", ["Task: click the button\n"]),
        ("assistant", [_SAID[0]]),
        (
            "user",
            [
                "Result: the page changed\n"
                '1. click at [500, 40]: hit searchbox "Find"\n'
                "2. type 'lamp' without Enter: hit searchbox\n"
                "Page: Page 1 (http://shop/1)\n"
            ],
        ),
        ("assistant", ["<think>\n" + _SAID[1]]),
        ("user", ["Result: the page changed\nPage: Page 2 (http://shop/2)\n", "screenshot 2"]),
    ]


def test_async_webrl_shows_one_earlier_round_and_lines_of_those_before() -> None:
    assert _prompt(ASYNC_WEBRL, _PLAIN) == [
        (
            "user",
            [
                "Task: click the button\nEarlier steps:\n1. Click the field. | Page 0 | the page changed\n"
                "Result: the page changed: hit searchbox\nPage: Page 1 (http://shop/1)\n",
                "screenshot 1",
            ],
        ),
        ("assistant", [_PLAIN[1]]),
        ("user", ["Result: the page changed\nPage: Page 2 (http://shop/2)\n", "screenshot 2"]),
    ]


def test_webgym_shows_four_earlier_rounds() -> None:
    said = (*_PLAIN, *_PLAIN, *_PLAIN)
    found = _prompt(WEBGYM, said)
    shown = [part for _, parts in found for part in parts if part.startswith("screenshot")]
    assert shown == [f"screenshot {step}" for step in (2, 3, 4, 5, 6)]
    assert found[0][1][0].splitlines()[:4] == [
        "Task: click the button",
        "Earlier steps:",
        "1. Click the field. | Page 0 | the page changed",
        "2. Scroll down. | Page 1 | the page changed",
    ]


# samples and advantages -----------------------------------------------------------------------------------------------


async def _play(
    bus: MemoryBus, task: Task, lengths: tuple[int, ...], *, unparsed: int = -1, unchanged: int = -1
) -> Trajectory:
    """An episode of answers with so many tokens; `unparsed` and `unchanged` are steps."""
    await chain.admit(bus, SUBJECTS, task)
    owner = await chain.EpisodeChain.take(bus, SUBJECTS, task, WorkerId("b"))
    assert isinstance(owner, chain.EpisodeChain)
    for step, length in enumerate(lengths):
        seen = builders.observation(task, step, data=str(step).encode())
        seq = await owner.observe(msgspec.structs.replace(seen, same_screenshot=step == unchanged + 1 > 0))
        answer = StepRequest(
            episode=task.episode,
            attempt=1,
            step=step,
            action=ACTION,
            parsed=step != unparsed,
            response="",
            prompt_tokens=(1, 2),
            completion_tokens=tuple(range(10, 10 + length)),
            logprobs=(-1.0,) * length,
            versions=(VersionSpan(start=0, end=length, version=PolicyVersion(0)),),
            screenshots=(step,),
        )
        owner.answered(await chain.answer(bus, SUBJECTS, seq, answer))
    trajectory = Trajectory(
        task=task,
        attempt=1,
        outcome=Outcome.DONE,
        num_observations=owner.num_observations,
        num_steps=owner.num_steps,
        versions=(PolicyVersion(0),) * len(lengths),
        num_unparsed=int(unparsed >= 0),
    )
    await owner.finish(trajectory)
    return trajectory


async def _learnt(
    config: Config, folder: Path, rewards: tuple[float, ...], lengths: tuple[tuple[int, ...], ...]
) -> list[Item]:
    """What one iteration over one group hands to the engine, in one pass."""
    bus, recorder = MemoryBus(SUBJECTS), Recorder()
    for member, (reward, tokens) in enumerate(zip(rewards, lengths, strict=True)):
        task = msgspec.structs.replace(member_task(0, member), max_steps=9)
        odd = {"unparsed": 1, "unchanged": 2} if len(tokens) == 4 else {}
        await judge(bus, await _play(bus, task, tokens, **odd), reward)
    objective = config.objective_config
    algorithm = replace(config.algorithm_config, num_train_epochs=1, val_split_ratio=0.0)
    await train(bus, folder, recorder, objective, num_iterations=1, batch=len(rewards), algorithm=algorithm)
    return recorder.items


def _by_step(items: list[Item]) -> dict[tuple[int, int], tuple[float, int]]:
    """(member, step) to the advantage of its tokens, and how many there are."""
    found = {}
    for item in items:
        (advantage,) = {round(float(advantage), 4) for advantage in item.targets.advantages}
        ref = item.sample.ref
        found[int(ref.episode.rpartition("m")[2]), ref.step] = (advantage, item.sample.num_completion)
    return found


async def test_openwebrl_trains_on_every_step_and_weighs_turns_alike(tmp_path: Path) -> None:
    items = await _learnt(OPENWEBRL, tmp_path, (1.0, 0.0, 0.0, 1.0, 0.0), ((1, 3, 2, 2), (2,), (2,), (4,), (2,)))
    good, bad = 1.0954, -0.7303
    assert _by_step(items) == {
        (0, 0): (good, 1),
        (0, 1): (good, 3),  # could not be parsed
        (0, 2): (good, 2),  # changed nothing
        (0, 3): (good, 2),
        (1, 0): (bad, 2),
        (2, 0): (bad, 2),
        (3, 0): (good, 4),
        (4, 0): (bad, 2),
    }
    # Two optimizer steps of three turns and one of two: a mean over tokens, then over turns.
    turns = [round(1 / (weight * item.sample.num_completion)) for item in items for weight in item.targets.weights[:1]]
    assert turns == [3, 3, 3, 3, 3, 3, 2, 2]


async def test_async_webrl_divides_by_a_constant_and_weighs_tokens_alike(tmp_path: Path) -> None:
    lengths = ((1, 3), *((2,),) * 7)
    items = await _learnt(ASYNC_WEBRL, tmp_path, (1.0, *(0.0,) * 7), lengths)
    found = _by_step(items)
    good, bad = 0.2475, -0.0354
    assert found == {(0, 0): (good, 1), (0, 1): (good, 3), **{(member, 0): (bad, 2) for member in range(1, 8)}}
    for begin in (0, 3, 6):
        step = items[begin : begin + 3]
        num_tokens = sum(item.sample.num_completion for item in step)
        for item in step:
            assert item.targets.weights == pytest.approx([1 / num_tokens] * item.sample.num_completion)


async def test_webgym_imitates_the_readable_steps_of_successes_that_changed_the_page(tmp_path: Path) -> None:
    items = await _learnt(WEBGYM, tmp_path, (1.0, 0.0), ((1, 3, 2, 2), (2, 2, 2, 2)))
    trained = sorted((item.sample.ref.episode.rpartition("m")[2], item.sample.ref.step) for item in items)
    assert trained == [("0", 0), ("0", 3)]


# rewards --------------------------------------------------------------------------------------------------------------

_ENDS = '<tool_call>\n{"name": "done", "arguments": {"response": "12.90"}}\n</tool_call>'


@pytest.mark.parametrize(
    ("passed", "outcome", "unparsed_last", "said", "reward"),
    [
        (True, Outcome.ANSWERED, 0, f"Done.\n</think>\n\n{_ENDS}", 1.0),
        (False, Outcome.ANSWERED, 0, f"Done.\n</think>\n\n{_ENDS}", 0.0),
        (True, Outcome.ANSWERED, 0, f"I could say {_ENDS}", 0.0),  # its thinking never ended
        (False, Outcome.STEP_LIMIT, 0, _SAID[1], 0.0),
        (True, Outcome.STEP_LIMIT, 1, "And then?\n</think>\n\n", 0.0),  # the last turn had no readable form
        (False, Outcome.UNREADABLE, 3, "And then?", -1.0),
    ],
)
def test_openwebrl_rewards(passed: bool, outcome: Outcome, unparsed_last: int, said: str, reward: float) -> None:
    trajectory = builders.trajectory(builders.task(max_steps=15), num_steps=4)
    trajectory = msgspec.structs.replace(
        trajectory,
        outcome=outcome,
        num_unparsed=unparsed_last,
        num_unparsed_last=unparsed_last,
        thinking_ended_last=ends_thinking(said, OPENWEBRL.model_config),
    )
    read = parse_response(said, ActionSpace.of(OPENWEBRL.context_config), max_calls=10)
    assert read.parsed == (unparsed_last == 0)
    ruling = shaped(scored(passed=passed), trajectory, OPENWEBRL.judge_config.shaping)
    assert ruling.reward == reward


def test_the_others_take_nothing_off() -> None:
    trajectory = msgspec.structs.replace(
        builders.trajectory(builders.task(), num_steps=2), num_unparsed=2, num_unparsed_last=2
    )
    for config in (ASYNC_WEBRL, WEBGYM):
        assert shaped(scored(passed=True), trajectory, config.judge_config.shaping).reward == 1.0


# losses ---------------------------------------------------------------------------------------------------------------


def _loss(config: Config, *, advantage: float, now: float, behaviour: float = -1.0, proximal: float = -1.0) -> float:
    """Of one token with these log-probabilities."""
    sample = text_sample(0, 1)
    arrays = {"advantages": advantage, "behaviour": behaviour, "proximal": proximal, "weights": 1.0}
    item = Item(sample, targets_of(sample, **{name: np.array([value]) for name, value in arrays.items()}))
    outputs = Outputs(torch.tensor([now], dtype=torch.float64), torch.zeros(1, dtype=torch.float64))
    return float(PolicyObjective(config.objective_config)(outputs, token_targets([item])).losses[0])


@pytest.mark.parametrize(
    ("advantage", "now", "loss"),
    [
        (1.09544, -1.0, -1.09544),
        (1.09544, -0.5, -1.28 * 1.09544),  # e^0.5 = 1.649 is held to 1.28
        (1.09544, -2.0, -exp(-1) * 1.09544),
        (-0.73030, -0.5, exp(0.5) * 0.73030),  # there is no dual clip
        (-0.73030, -2.0, 0.8 * 0.73030),  # e^-1 = 0.368 is held to 0.8
    ],
)
def test_openwebrl_losses(advantage: float, now: float, loss: float) -> None:
    assert _loss(OPENWEBRL, advantage=advantage, now=now) == pytest.approx(loss, abs=1e-5)


@pytest.mark.parametrize(
    ("advantage", "behaviour", "proximal", "now", "loss"),
    [
        (0.247487, -1.0, -1.0, -1.0, -0.247487),
        (0.247487, -1.0, -0.5, -0.5, -exp(0.5) * 0.247487),  # weighed by proximal / behaviour
        (0.247487, -1.0, -1.0, -0.5, -1.2 * 0.247487),
        (0.247487, -3.0, -1.0, -1.0, 0.0),  # e^2 is above 5: dropped
        (-0.035355, -1.0, -1.0, 0.5, 3 * 0.035355),  # e^1.5 = 4.48 is held to 3
        (-0.035355, -1.0, -1.0, -2.0, 0.8 * 0.035355),
    ],
)
def test_async_webrl_losses(advantage: float, behaviour: float, proximal: float, now: float, loss: float) -> None:
    found = _loss(ASYNC_WEBRL, advantage=advantage, behaviour=behaviour, proximal=proximal, now=now)
    assert found == pytest.approx(loss, abs=1e-5)


@pytest.mark.parametrize("now", [-0.25, -1.0, -4.0])
def test_webgym_losses(now: float) -> None:
    assert _loss(WEBGYM, advantage=0.0, now=now) == pytest.approx(-now)
