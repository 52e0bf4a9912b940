"""The demo shop in a real Chromium: every task's scripted solution is worth 1, and a near miss of it 0."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import msgspec
import pytest

from agents.demonstration import Mode, demonstrated_action
from browser_workers.browser import Browser, Opening, Performed, Session, View
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.play import Play
from browser_workers.suites import resolve
from browser_workers.suites.shop.steps import locate, to_action
from browser_workers.suites.shop.suite import ShopSuite
from browser_workers.suites.shop.tasks.draw import shop_tasks
from browser_workers.suites.shop.tasks.lines import task_lines
from browser_workers.suites.shop.tasks.task import ShopTask
from bus import chain
from bus.chain import EpisodeChain
from bus.memory import MemoryBus
from bus.settlement import settle
from bus.subjects import Subjects
from bus.topology import step_queue
from judges.named.environment_v1 import EnvironmentJudge
from schemas.browser_config import BrowserConfig
from schemas.bus_config import BusConfig
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import Action, ActionKind, CheckKind, FinalState, Outcome, Split, StepWake, Trajectory, Verdict
from tests import builders
from tests.support.browsers.page_plays import judged, playing
from tests.support.browsers.patience import wait_for_pages
from trainer.feeding.task_files import read_tasks

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
CONFIG = BusConfig(run=builders.RUN)
SUBJECTS = Subjects(builders.RUN)
WORKER = WorkerId("browser-1")
SIZE = (640, 480)
NUM_AT_ONCE = 8
SUITES = {"shop": ShopSuite()}
TASKS = shop_tasks(0)
_DEMONSTRATED = slice(5, None, 12)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_pages(monkeypatch)


class Player:
    """Follows a task's solution: looks where the next step's element is whenever the page is looked at."""

    def __init__(self, task: ShopTask) -> None:
        self.task = task
        self.action: Action | None = None
        self.almost: FinalState | None = None
        """The page before the last step that does something."""
        self.num_done = 0

    async def look(self, session: Session) -> None:
        steps, expressions = (
            self.task.solution,
            [check.expression for check in self.task.checks if check.kind is CheckKind.PAGE],
        )
        if self.num_done == len(steps) - 2:
            state = await session.state()
            self.almost = FinalState(state.url, state.title, await session.page_values(expressions))
        step = steps[self.num_done]
        (located,) = await session.page_values([locate(step)])
        self.action = to_action(step, located)

    def near_miss(self, played: Trajectory) -> Trajectory:
        """With another answer, or as it was before the last step."""
        answer = self.task.answer
        if answer is None:
            return msgspec.structs.replace(played, final_state=self.almost)
        digits = [character for character in answer if character.isdigit()]
        wrong = answer.replace(digits[-1], str((int(digits[-1]) + 1) % 10)) if digits else f"not {answer}"
        return msgspec.structs.replace(played, answer=wrong)


class WatchedSession:
    """The real session, with the player looking on."""

    def __init__(self, inner: Session, player: Player) -> None:
        self._inner, self._player = inner, player
        self.open, self.state, self.page_values = inner.open, inner.state, inner.page_values
        self.wait_failed, self.blockage, self.pass_over_blockage = inner.wait_failed, inner.blockage, inner.pass_over_blockage
        self.egress, self.has_other_egress = inner.egress, inner.has_other_egress

    async def perform(self, action: Action) -> Performed:
        performed = await self._inner.perform(action)
        self._player.num_done += 1
        assert not performed.refused, f"{action}: {performed.refused}"
        return performed

    async def view(self) -> View:
        await self._player.look(self._inner)
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
                        # Nobody in particular: every wake goes to any policy.
                        worker=WorkerId(""),
                    )
                    await chain.answer(self.bus, SUBJECTS, wake.observation_seq, step)

    async def play(self, name: str, player: Player) -> Trajectory:
        task = msgspec.structs.replace(
            builders.task(name, max_steps=40), website=f"shop:{player.task.start}", checks=player.task.checks
        )
        self.players[task.episode] = player
        await chain.admit(self.bus, SUBJECTS, task)
        episode = await EpisodeChain.take(self.bus, SUBJECTS, task, WORKER)
        assert isinstance(episode, EpisodeChain)
        play = Play(bus=self.bus, subjects=SUBJECTS, chain=episode, worker=WORKER, resend_s=60.0, max_attempts=1)
        return await play.end(await play.run(WatchedBrowser(self.browser, player), resolve(task.website, SUITES)))


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    config = BrowserConfig(viewport_width=SIZE[0], viewport_height=SIZE[1])
    async with PlaywrightBrowser(config, EnvConfig()) as browser, anyio.create_task_group() as group:
        stage = Stage(MemoryBus(SUBJECTS, CONFIG), browser)
        group.start_soon(stage.answer)
        yield stage
        group.cancel_scope.cancel()


async def verdicts(stage: Stage, name: str, task: ShopTask) -> str:
    """What is wrong with how the task was scored; empty: nothing."""
    player = Player(task)
    try:
        played = await stage.play(name, player)
    except (AssertionError, ValueError) as error:
        return f"{task.template}: {error}"
    if played.outcome is not Outcome.ANSWERED:
        return f"{task.template}: {played.outcome.value} {played.error}"
    judge = EnvironmentJudge()
    full, near = (
        await judge.judge(builders.judged_episode(played)),
        await judge.judge(builders.judged_episode(player.near_miss(played))),
    )
    if (full.reward, near.reward) == (1.0, 0.0):
        return ""
    said = "; ".join(each.reasoning for ruling in (full, near) for each in ruling.stages)
    return f"{task.template}: {full.reward} and {near.reward}: {said}"


async def test_every_solution_is_worth_1_and_its_near_miss_0() -> None:
    assert len(TASKS) >= 40
    todo = iter(list(enumerate(TASKS)))
    wrong = list[str]()
    async with staged() as stage, anyio.create_task_group() as players:

        async def play_on() -> None:
            for index, task in todo:
                if said := await verdicts(stage, f"t{index}", task):
                    wrong.append(said)

        for _ in range(NUM_AT_ONCE):
            players.start_soon(play_on)
    assert wrong == []


@pytest.mark.parametrize("mode", ["coordinates", "set_of_marks"])
async def test_demonstrations_are_judged_a_success(tmp_path: Path, mode: Mode) -> None:
    file = tmp_path / "shop.jsonl"
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in task_lines()[_DEMONSTRATED]))
    tasks = [
        msgspec.structs.replace(
            builders.task(spec.task, max_steps=40), website=spec.website, checks=spec.checks, demonstrate=True
        )
        for spec in read_tasks(file)
    ]
    policy, context = partial(demonstrated_action, mode=mode), ContextConfig(interaction_mode=mode)
    async with playing(tmp_path, policy, SUITES, context=context, size=SIZE) as bus:
        judgements = await judged(bus, tasks)
    assert {each.trajectory.task.website: (each.verdict, each.reward) for each in judgements} == dict.fromkeys(
        (task.website for task in tasks), (Verdict.SUCCESS, 1.0)
    )
    assert all("solution" not in each.trajectory.final_state.url for each in judgements if each.trajectory.final_state)


async def test_what_is_not_done_is_judged_a_failure(tmp_path: Path) -> None:
    line = task_lines()[-1]
    task = builders.task("t0", max_steps=5)
    task = msgspec.structs.replace(task, website=line["website"], checks=shop_tasks()[-1].checks, demonstrate=True)
    async with playing(tmp_path, lambda _: Action(kind=ActionKind.ANSWER, text="done"), SUITES, size=SIZE) as bus:
        (judgement,) = await judged(bus, [task])
    assert (judgement.verdict, judgement.reward) == (Verdict.FAILURE, 0.0)
