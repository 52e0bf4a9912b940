"""Whole episodes that meet blocks, in a real Chromium: by another proxy, with a hook, and what their records say."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.worker import BrowserWorker
from bus.codec import encode
from bus.context import WorkerContext
from bus.memory import MemoryBus
from bus.presence import Status
from judges.named.environment_v1 import EnvironmentJudge
from judges.worker import JudgeWorker
from schemas.browser_config import BrowserConfig
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.ids import WorkerId
from schemas.judge_config import JudgeConfig
from schemas.messages import Action, ActionKind, Judgement, Outcome, Role, Task, Verdict
from tests import builders
from tests.support.browsers.local_site import Reply, local_site
from tests.support.browsers.page_plays import CONFIG, SUBJECTS, answer_steps, judged
from tests.support.browsers.scripted_proxy import scripted_proxy
from tests.support.browsers.staged_network import StagedNetwork

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
NAMES = {"www.shop.example": (("93.184.215.14",),)}
PAGE = Reply(b"<!doctype html><title>Lamps</title><p>Lamps of all kinds</p>")
CHECK = b"<!doctype html><title>Wait</title><div id=px-captcha>Press and hold</div>"
BLOCK = Reply(CHECK, "403 Forbidden")
ANSWER = Action(kind=ActionKind.ANSWER, text="blue")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def task(name: str) -> Task:
    return msgspec.structs.replace(builders.task(name), website="http://www.shop.example/", timeout_s=600.0)


@asynccontextmanager
async def playing(port: int, **keys: object) -> AsyncIterator[MemoryBus]:
    config = BrowserConfig(viewport_width=400, viewport_height=300, challenge_wait_s=0.0, **keys)  # type: ignore[arg-type]
    env = EnvConfig(server_size=1)
    bus = MemoryBus(SUBJECTS, CONFIG, (EnvironmentJudge.name,))
    network = StagedNetwork(NAMES, served={"93.184.215.14": port}).network
    async with PlaywrightBrowser(config, env, network=network) as browser, anyio.create_task_group() as group:
        whole = Config(bus_config=CONFIG, env_config=env, browser_config=config)
        status = Status(Role.BROWSER, WorkerId("browser-1"))
        group.start_soon(BrowserWorker(WorkerContext(bus, SUBJECTS, status), whole, browser=browser, suites={}).run)
        judge = WorkerContext(bus, SUBJECTS, Status(Role.JUDGE, WorkerId("judge-1")))
        judging = Config(bus_config=CONFIG, judge_config=JudgeConfig(max_attempts=1))
        group.start_soon(JudgeWorker(judge, judging, judge=EnvironmentJudge()).run)
        group.start_soon(answer_steps, bus, lambda _: ANSWER)
        yield bus
        group.cancel_scope.cancel()


async def test_it_comes_by_another_proxy_and_no_record_has_a_password(tmp_path: Path) -> None:
    async with (
        local_site({"/": BLOCK}) as closed,
        local_site({"/": PAGE}) as open_,
        scripted_proxy("http", closed.port, user="mine", password="secret") as one,
        scripted_proxy("http", open_.port, user="mine", password="secret") as other,
    ):
        file = tmp_path / "proxies"
        file.write_text(f"{one.url_with('secret')}\n{other.url_with('secret')}\n")
        file.chmod(0o600)
        async with playing(9, on_block="other_identity", proxies_file=str(file), proxy_cooldown_s=86_000.0) as bus:
            found: list[Judgement] = await judged(bus, [task("a"), task("b")])
            names = [f"http://127.0.0.1:{proxy.port}" for proxy in (one, other)]
            blocked = await bus.subjects(SUBJECTS.blocklist, SUBJECTS.everything("blocked"))
    first, second = (judgement.trajectory for judgement in found)
    assert (first.outcome, first.answer, first.attempt, first.egress) == (Outcome.ANSWERED, "blue", 2, names[1])
    assert [(met.provider, met.attempt, met.egress) for met in first.blockages] == [("perimeterx", 1, names[0])]
    assert (second.outcome, second.attempt, second.egress, second.blockages) == (Outcome.ANSWERED, 1, names[1], ())
    assert not any(b"secret" in encode(judgement) or b"mine" in encode(judgement) for judgement in found)
    assert blocked == {}, "its site lets visitors in"


async def test_what_stays_blocked_is_excluded_and_its_site_left_out() -> None:
    async with local_site({"/": BLOCK}) as site, playing(site.port) as bus:
        (found,) = await judged(bus, [task("a")])
        blocked = await bus.subjects(SUBJECTS.blocklist, SUBJECTS.everything("blocked"))
    assert (found.verdict, found.reward, found.blocked) == (Verdict.EXCLUDED, None, True)
    played = found.trajectory
    assert (played.outcome, played.num_observations, played.num_steps, played.egress) == (Outcome.BLOCKED, 1, 0, "")
    assert list(blocked) == [SUBJECTS.blocked("shop.example")]


async def test_somebody_lifts_it_while_it_is_waited_for() -> None:
    lifted = b"<script>setTimeout(() => document.querySelector('div').remove(), 300)</script>"
    async with (
        local_site({"/": Reply(CHECK + lifted, "403 Forbidden")}) as site,
        playing(site.port, on_block="hook", block_hook="wait", block_hook_timeout_s=86_000.0) as bus,
    ):
        (found,) = await judged(bus, [task("a")])
    played = found.trajectory
    assert (played.outcome, played.answer, played.attempt) == (Outcome.ANSWERED, "blue", 1)
    assert [met.lifted for met in played.blockages] in ([True], [])
