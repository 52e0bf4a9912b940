"""The simulated parts do what is drawn for them, the same every time."""

from dataclasses import replace
from pathlib import Path

import anyio
import numpy as np
import pytest

from agents.engine import GenerationRequest
from agents.parsing import parse_response
from browser_workers.browser import Opening
from browser_workers.suites import UnknownWebsite
from ops.simulation.browser import Script, SimulatedBrowser, SimulatedSuite
from ops.simulation.draws import generator, num_steps, spread
from ops.simulation.engine import SimulatedEngine
from ops.simulation.hostility import TEXT, Hostility
from ops.simulation.material import ensure_demo_task_file, ensure_model, ensure_task_file
from ops.simulation.training import Counters, SimulatedBuilder, SimulatedTrainEngine, read_counters
from schemas.errors import CheckpointCorrupt, PageFailed
from schemas.ids import PolicyVersion
from schemas.messages import Action, ActionKind
from schemas.simulation_config import SimulationConfig
from tests import builders
from trainer.feeding.task_files import read_tasks
from trainer.items import Item, targets_of

pytestmark = pytest.mark.anyio
CONFIG = SimulationConfig(screenshot_kb=4.0, mean_steps=4.0)
CLICK = Action(kind=ActionKind.CLICK, point=(1.0, 1.0))


def opening(task: int) -> Opening:
    return SimulatedSuite().resolve("page", f"task={task}")


@pytest.mark.parametrize("tail", ["none", "exponential", "pareto"])
def test_draws_have_the_mean_that_is_asked_for(tail: str) -> None:
    draw = generator("mean", tail)
    values = [spread(draw, 10.0, tail) for _ in range(20_000)]

    assert 9.0 < sum(values) / len(values) < 11.0


def test_numbers_of_steps_stay_within_their_bounds() -> None:
    config = SimulationConfig(mean_steps=4.0, max_steps=12, tail="pareto")
    counts = [num_steps(generator(index), config) for index in range(5000)]

    assert min(counts) >= 1
    assert max(counts) == 12
    assert 3.0 < sum(counts) / len(counts) < 4.5


async def test_a_page_is_over_after_its_steps_and_gives_its_reward_once() -> None:
    script = Script.of(opening(3).url, CONFIG)
    async with SimulatedBrowser(CONFIG).session(opening(3)) as session:
        await session.open()
        screenshots = []
        for _ in range(script.num_steps):
            view = await session.view()
            screenshots.append(view.screenshot.data)
            assert view.state.environment is not None
            assert not view.state.environment.done
            await session.perform(CLICK)
        environment = (await session.state()).environment

    assert environment is not None
    assert environment.done
    assert environment.reward == script.reward
    assert {len(data) for data in screenshots} == {4096}
    assert len(set(screenshots)) == script.num_steps


async def test_failing_pages_fail_where_they_did_before() -> None:
    config = replace(CONFIG, failure_share=1.0)
    script = Script.of(opening(5).url, config)
    for _ in range(2):
        async with SimulatedBrowser(config).session(opening(5)) as session:
            done = 0
            with pytest.raises(PageFailed):  # noqa: PT012 - which operation fails is what is drawn
                await session.open()
                while True:
                    await session.perform(CLICK)
                    done += 1
            assert done == (script.fails_at or 1) - 1


def test_another_page_is_refused() -> None:
    with pytest.raises(UnknownWebsite, match="write page"):
        SimulatedSuite().resolve("shop", "")


async def test_answers_can_be_read_and_trained_on() -> None:
    request = GenerationRequest(messages=(), observation=builders.observation(builders.task()))
    async with SimulatedEngine(CONFIG) as engine:
        await engine.load(Path("anywhere"), PolicyVersion(3))
        first, second = await engine.generate(request), await engine.generate(request)

    assert first == second
    assert parse_response(first.text).parsed
    assert len(first.logprobs) == len(first.completion_tokens)
    assert {span.version for span in first.versions} == {3}


async def test_an_engine_stands_still_while_it_loads() -> None:
    """An answer on its way takes as much longer, one that is asked for meanwhile begins behind it."""
    request = GenerationRequest(messages=(), observation=builders.observation(builders.task()))
    slow = replace(CONFIG, policy_latency_ms=30.0, load_latency_ms=200.0, tail="none")
    waited: list[float] = []

    async def answer(engine: SimulatedEngine) -> None:
        await engine.generate(request)
        waited.append(anyio.current_time() - began)

    async with SimulatedEngine(slow) as engine, anyio.create_task_group() as group:
        began = anyio.current_time()
        # All begin in one turn of the event loop, in this order.
        group.start_soon(answer, engine)
        group.start_soon(engine.load, Path("anywhere"), PolicyVersion(1))
        group.start_soon(answer, engine)
    assert len(waited) == 2
    assert min(waited) >= 0.23 - 0.01


def test_what_was_learnt_comes_back_from_a_checkpoint(tmp_path: Path) -> None:
    task = builders.task()
    step = builders.step_request(task)
    ref = next(iter(builders.trajectory(task, num_observations=1, num_steps=1).steps))
    builder = SimulatedBuilder()
    sample = builder.build(ref, step, builder.patches([b"x" * 100]))
    engine = SimulatedTrainEngine(CONFIG)

    engine.train([Item(sample, targets_of(sample))])
    (tmp_path / "trainer").mkdir()
    engine.files().write(tmp_path)

    assert read_counters(tmp_path) == Counters(num_updates=1, num_tokens=len(step.completion_tokens))
    assert np.array_equal(engine.completion_logprobs([sample])[0], np.array(step.logprobs, dtype=np.float32))


def test_a_folder_without_counters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointCorrupt, match="cannot be read"):
        read_counters(tmp_path)


def test_material_is_made_once_and_can_be_read(tmp_path: Path) -> None:
    simulated = ensure_task_file(tmp_path / "tasks" / "train.jsonl", num_tasks=7)
    before = simulated.read_bytes()

    assert ensure_task_file(simulated, num_tasks=9).read_bytes() == before
    assert len(read_tasks(simulated)) == 7
    assert len(read_tasks(ensure_demo_task_file(tmp_path / "demo.jsonl", num_tasks=3))) == 3
    mixed = read_tasks(ensure_demo_task_file(tmp_path / "mixed.jsonl", num_tasks=20, hostile_every=10))
    assert [index for index, spec in enumerate(mixed) if spec.website.startswith("hostile:")] == [9, 19]
    assert (ensure_model(tmp_path / "model") / "config.json").is_file()


def hostile(kind: Hostility) -> Opening:
    config = replace(CONFIG, hostile_share=1.0)
    return next(opening(task) for task in range(50) if Script.of(opening(task).url, config).hostility is kind)


async def test_hostile_pages_say_raise_or_hang() -> None:
    browser = SimulatedBrowser(replace(CONFIG, hostile_share=1.0))
    async with browser.session(hostile(Hostility.TEXT)) as session:
        assert (await session.view()).state.title == TEXT
    async with browser.session(hostile(Hostility.RAISES)) as session:
        with pytest.raises(ZeroDivisionError, match="means harm"):
            await session.view()
    async with browser.session(hostile(Hostility.HANGS)) as session:
        with pytest.raises(PageFailed, match="did not answer"):
            await session.view()


def test_no_page_means_harm_unless_it_is_asked_to() -> None:
    assert {Script.of(opening(task).url, CONFIG).hostility for task in range(200)} == {None}
