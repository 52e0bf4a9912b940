"""Plays the tasks of a configuration once in Chromium, and has its judge judge them: no server, no model, no training.

    def test_every_task_can_be_solved() -> None:
        assert all(judgement.reward == 1.0 for judgement in rehearse("config.yaml").values())

Whoever writes tasks, a suite or a judge sees within seconds whether they belong together.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from agents.demonstration import demonstrated_action
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.suites import open_suites
from browser_workers.worker import BrowserWorker
from bus import chain
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from bus.settlement import settle
from bus.subjects import Subjects
from bus.topology import step_queue
from ops.config.loading import load_config
from ops.roles.judge import judge_worker, open_judge
from ops.run.folder import RunFolder
from ops.run.joining import RoleRun, subjects_of
from ops.run.tasks import tasks_of
from schemas.config import Config
from schemas.errors import ChainConflict, PolicyError
from schemas.ids import PolicyVersion, TaskId, WorkerId
from schemas.messages import Action, ActionKind, Judgement, Observation, Role, Split, StepRequest, StepWake, Task
from trainer.feeding.curriculum import Slot, task_of

Player = Callable[[Observation], Action]
"""Says what is done at what is seen, in coordinates from 0 to 1000."""
_DONE = Action(kind=ActionKind.ANSWER)


def scripted(observation: Observation) -> Action:
    """Follows the way that a task's suite knows, and ends the episode behind its last step."""
    try:
        return demonstrated_action(observation)
    except PolicyError:
        return _DONE


def rehearse(recipe: str | Path, player: Player = scripted, *, overrides: Sequence[str] = ()) -> Mapping[TaskId, Judgement]:
    """What the judge says of each training task, as `player` plays it. Paths in the configuration count from here.

    Raises:
        ConfigurationError: the configuration, a part that it names, or a line of its tasks is wrong; says what to write.
    """
    return anyio.run(_rehearse, load_config(recipe, ["feeder_config.demonstrate=true", *overrides]), player)


async def _rehearse(config: Config, player: Player) -> Mapping[TaskId, Judgement]:
    subjects = subjects_of(config)
    bus = MemoryBus(subjects, config.bus_config, (config.judge_config.rubric,))
    tasks = _tasks(config)
    async with (
        open_judge(_role(bus, subjects, config, Role.JUDGE)) as judge,
        PlaywrightBrowser(config.browser_config, config.env_config, config.context_config) as browser,
        anyio.create_task_group() as group,
    ):
        suites = open_suites(config.browser_config.suites)
        browsing = _role(bus, subjects, config, Role.BROWSER).context
        group.start_soon(BrowserWorker(browsing, config, browser=browser, suites=suites).run)
        group.start_soon(judge_worker(_role(bus, subjects, config, Role.JUDGE), judge).run)
        group.start_soon(_answer, bus, subjects, config, player)
        found: dict[TaskId, Judgement] = {}
        async with bus.tail(subjects.judged, subjects.judgements(None)) as judged:
            for task in tasks:
                await chain.admit(bus, subjects, task)
                await bus.append(subjects.tasks, subjects.task(task.split, task.episode), task)
            while len(found) < len(tasks):
                message = (await anext(judged)).message
                if isinstance(message, Judgement):
                    found[message.trajectory.task.task] = message
        group.cancel_scope.cancel()
    return {task.task: found[task.task] for task in tasks}


def _tasks(config: Config) -> list[Task]:
    specs = tasks_of(config, config.env_config.train_tasks)
    return [
        task_of(
            Slot(spec, index, 0),
            run=config.bus_config.run,
            split=Split.TRAIN,
            env=config.env_config,
            feeder=config.feeder_config,
            version=PolicyVersion(0),
        )
        for index, spec in enumerate(specs)
    ]


def _role(bus: MemoryBus, subjects: Subjects, config: Config, role: Role) -> RoleRun:
    context = WorkerContext(bus, subjects, Status(role, WorkerId(f"{role.value}-1")))
    return RoleRun(RunFolder(Path(config.save_path)), config, context)


async def _answer(bus: MemoryBus, subjects: Subjects, config: Config, player: Player) -> None:
    """In place of a policy worker."""
    async with bus.work(step_queue(subjects, config.bus_config, Split.TRAIN), prefetch=8) as inbox:
        async for delivery in inbox:
            async with settle(bus, delivery, WorkerId("player")):
                wake = delivery.message
                waiting = await chain.open_observation(bus, subjects, wake) if isinstance(wake, StepWake) else None
                if waiting is None:
                    continue
                with suppress(ChainConflict):
                    await chain.answer(bus, subjects, waiting.seq, _step(waiting.observation, player))


def _step(seen: Observation, player: Player) -> StepRequest:
    """Of nobody in particular, so that every step goes to any policy."""
    return StepRequest(
        episode=seen.episode,
        attempt=seen.attempt,
        step=seen.step,
        action=player(seen),
        parsed=True,
        response="",
        prompt_tokens=(),
        completion_tokens=(),
        logprobs=(),
        versions=(),
        worker=WorkerId(""),
    )
