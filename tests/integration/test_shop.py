"""The demo shop in a real Chromium: every task's scripted solution is worth 1, a near miss of each is worth 0."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import msgspec
import pytest

from browser_workers.browser import Browser, Opening, Performed, Session, View
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.play import Play
from browser_workers.suites.shop.steps import Say, Step, locate, to_action
from browser_workers.suites.shop.suite import ShopSuite
from browser_workers.suites.shop.tasks.lines import shop_tasks
from browser_workers.suites.shop.tasks.task import ShopTask
from browser_workers.suites.suite import resolve
from bus import chain
from bus.chain import EpisodeChain
from bus.memory import MemoryBus
from bus.settlement import settle
from bus.subjects import Subjects
from bus.topology import step_queue
from judges.environment import EnvironmentJudge
from judges.judge import Ruling
from schemas.config import BrowserConfig, BusConfig, EnvConfig
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import Action, Outcome, Split, StepWake
from tests import builders

pytestmark = [pytest.mark.anyio, pytest.mark.integration, pytest.mark.timeout(180)]
CONFIG = BusConfig(run=builders.RUN)
SUBJECTS = Subjects(builders.RUN)
WORKER = WorkerId("browser-1")
NUM_AT_ONCE = 4
SUITES = {"shop": ShopSuite()}
TASKS = shop_tasks(0)


def near_miss(task: ShopTask) -> tuple[Step, ...]:
    """Almost the solution: another answer at once, else the step before the answer is left out."""
    *done, last = task.solution
    if task.answer is None:
        return (*done[:-1], last)
    digits = [character for character in task.answer if character.isdigit()]
    return (Say(task.answer.replace(digits[-1], str((int(digits[-1]) + 1) % 10)) if digits else f"not {task.answer}"),)


@dataclass
class Player:
    """Follows a script: looks where the next step's element is whenever the page is looked at."""

    steps: Sequence[Step]
    session: Session | None = None
    position: int = 0
    action: Action | None = None

    async def look(self) -> None:
        assert self.session is not None
        step = self.steps[self.position]
        (located,) = await self.session.page_values([locate(step)])
        self.action = to_action(step, located)
        self.position += 1


class WatchedSession:
    """The real session, with the player looking on."""

    def __init__(self, inner: Session, player: Player) -> None:
        self._inner, self._player = inner, player
        player.session = inner
        self.open, self.state, self.page_values = inner.open, inner.state, inner.page_values
        self.wait_failed = inner.wait_failed

    async def perform(self, action: Action) -> Performed:
        performed = await self._inner.perform(action)
        assert not performed.refused, performed.refused
        return performed

    async def view(self) -> View:
        await self._player.look()
        return await self._inner.view()


@dataclass
class WatchedBrowser:
    inner: Browser
    player: Player

    @asynccontextmanager
    async def session(self, opening: Opening) -> AsyncIterator[WatchedSession]:
        async with self.inner.session(opening) as session:
            yield WatchedSession(session, self.player)


@dataclass
class Stage:
    """A bus, a browser, and a policy that says what each episode's player found."""

    bus: MemoryBus
    browser: Browser
    players: dict[EpisodeId, Player] = field(default_factory=dict)

    async def answer(self) -> None:
        async with self.bus.work(step_queue(SUBJECTS, CONFIG, Split.TRAIN), prefetch=8) as inbox:
            async for delivery in inbox:
                async with settle(self.bus, delivery, WORKER):
                    wake = delivery.message
                    assert isinstance(wake, StepWake)
                    action = self.players[wake.episode].action
                    assert action is not None
                    step = msgspec.structs.replace(
                        builders.step_request(builders.task(), wake.step),
                        episode=wake.episode,
                        attempt=wake.attempt,
                        action=action,
                        worker=WorkerId(""),
                    )
                    await chain.answer(self.bus, SUBJECTS, wake.observation_seq, step)

    async def play(self, name: str, task: ShopTask, steps: Sequence[Step]) -> tuple[Outcome, Ruling]:
        built = builders.task(name, max_steps=40)
        played = msgspec.structs.replace(built, website=f"shop:{task.start}", checks=task.checks, instruction=task.instruction)
        player = self.players[played.episode] = Player(steps)
        await chain.admit(self.bus, SUBJECTS, played)
        episode = await EpisodeChain.take(self.bus, SUBJECTS, played, WORKER)
        assert isinstance(episode, EpisodeChain)
        play = Play(bus=self.bus, subjects=SUBJECTS, chain=episode, worker=WORKER, resend_s=60.0, max_attempts=1)
        finish = await play.run(WatchedBrowser(self.browser, player), resolve(played.website, SUITES))
        trajectory = await play.end(finish)
        assert not trajectory.error, f"{task.instruction}: {trajectory.error}"
        return trajectory.outcome, await EnvironmentJudge().judge(trajectory)


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    config = BrowserConfig(viewport_width=800, viewport_height=600)
    async with PlaywrightBrowser(config, EnvConfig()) as browser, anyio.create_task_group() as group:
        stage = Stage(MemoryBus(SUBJECTS, CONFIG, ()), browser)
        group.start_soon(stage.answer)
        yield stage
        group.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("scripts", "reward"),
    [
        pytest.param([task.solution for task in TASKS], 1.0, id="solutions"),
        pytest.param([near_miss(task) for task in TASKS], 0.0, id="near misses"),
    ],
)
async def test_every_task_is_scored(scripts: list[tuple[Step, ...]], reward: float) -> None:
    assert len(TASKS) >= 40
    todo = iter(list(enumerate(zip(TASKS, scripts, strict=True))))
    wrong = list[str]()
    async with staged() as stage, anyio.create_task_group() as players:

        async def play_on() -> None:
            for index, (task, steps) in todo:
                outcome, ruling = await stage.play(f"t{index}", task, steps)
                if (outcome, ruling.reward) != (Outcome.ANSWERED, reward):
                    said = "; ".join(each.reasoning for each in ruling.stages)
                    wrong.append(f"{task.template} ({outcome.value}, {ruling.reward}): {said}")

        for _ in range(NUM_AT_ONCE):
            players.start_soon(play_on)
    assert wrong == []
