"""What becomes of an episode that its site blocks: it ends, comes by another proxy, or goes on once a hook had it lifted."""

from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec
import pytest

from bus import chain
from ops.audit.chains import chain_fault
from ops.audit.ledger import read_ledger
from schemas.browser_config import BrowserConfig
from schemas.errors import ConfigurationError
from schemas.messages import Blockage, Observation, Outcome, RecordRef, Trajectory
from tests import builders
from tests.deadlines import HANGS_S
from tests.support.browsers import block_hooks
from tests.unit.test_browser_worker import CLICK, SUBJECTS, ScriptedBrowser, Stage, stage

pytestmark = pytest.mark.anyio
BLOCK = Blockage(site="site", sign="its captcha is shown", provider="recaptcha", status=403)
ELSEWHERE = msgspec.structs.replace(BLOCK, site="other", elsewhere=True)
FIRST, SECOND, THIRD = (f"http://p{number}.example:3128" for number in range(3))
EXAMPLES = Path(__file__).parents[2] / "examples"
HOOKS = "tests.support.browsers.block_hooks"
OTHERS = BrowserConfig(on_block="other_identity", proxies=(FIRST, SECOND, THIRD))


def hooked(name: str, timeout_s: float = 600.0) -> BrowserConfig:
    named = name if name == "wait" else f"{HOOKS}:{name}"
    return BrowserConfig(on_block="hook", block_hook=named, block_hook_timeout_s=timeout_s)


async def faults(on: Stage) -> list[str]:
    ledger = await read_ledger(on.bus, SUBJECTS)
    return [fault for found in ledger.chains.values() if (fault := chain_fault(found))]


async def last_observation(on: Stage, ended: Trajectory) -> Observation:
    ref = RecordRef(ended.episode, ended.attempt, "obs", ended.num_observations - 1)
    record = await chain.read(on.bus, SUBJECTS, ref)
    assert record is not None
    assert isinstance(record.message, Observation)
    return record.message


async def test_it_ends_with_a_look_at_the_page() -> None:
    async with stage(ScriptedBrowser(blocks={(0, 0): BLOCK})) as on:
        await on.admit(builders.task())
        ended = await on.ended()
        await on.all_acknowledged()
        seen = await last_observation(on, ended)
        assert await faults(on) == []
        assert on.status.metrics["blocked"] == 1.0
    assert (ended.outcome, ended.num_observations, ended.num_steps, ended.egress) == (Outcome.BLOCKED, 1, 0, FIRST)
    assert ended.error == "site let nobody in: recaptcha, its captcha is shown (HTTP 403)"
    assert ended.blockages == (msgspec.structs.replace(BLOCK, egress=FIRST, attempt=1),)
    assert ended.error in seen.error


async def test_it_ends_in_the_middle_and_carries_nothing_further_out() -> None:
    async with stage(ScriptedBrowser(clicks_to_win=9, blocks={(0, 1): BLOCK})) as on:
        await on.admit(builders.task())
        _, wake = await on.wake()
        await on.answer(wake, CLICK, CLICK)
        ended = await on.ended()
        assert on.browser.sessions[0].clicks == 1
    assert (ended.outcome, ended.num_steps, ended.num_observations) == (Outcome.BLOCKED, 1, 2)
    assert ended.blockages[0].step == 1


async def test_a_block_elsewhere_is_told_and_the_policy_goes_on() -> None:
    browser = ScriptedBrowser(clicks_to_win=3, blocks={(0, 1): ELSEWHERE, (0, 2): ELSEWHERE})
    async with stage(browser) as on:
        await on.admit(builders.task())
        for step in range(3):
            _, wake = await on.wake()
            said = (await on.observation(wake)).error
            assert ("other let nobody in" in said) is (step > 0)
            await on.answer(wake)
        ended = await on.ended()
    assert ended.outcome is Outcome.DONE
    assert ended.blockages == (msgspec.structs.replace(ELSEWHERE, egress=FIRST, attempt=1, step=1),)


async def test_it_is_played_anew_by_another_proxy() -> None:
    async with stage(ScriptedBrowser(num_egresses=3, blocks={(0, 0): BLOCK}), browsers=OTHERS) as on:
        await on.admit(builders.task())
        _, wake = await on.wake()
        assert wake.attempt == 2
        await on.answer(wake)
        ended = await on.ended()
        await on.all_acknowledged()
        assert await faults(on) == []
        assert on.status.metrics["other_identities"] == 1.0
        assert on.status.metrics["blocked"] == 0.0
    assert (ended.outcome, ended.attempt, ended.egress) == (Outcome.DONE, 2, SECOND)
    assert [(met.attempt, met.egress) for met in ended.blockages] == [(1, FIRST)]


@pytest.mark.parametrize(("num_egresses", "num_attempts"), [(1, 1), (2, 2), (9, 3)])
async def test_it_ends_when_no_other_proxy_helps(num_egresses: int, num_attempts: int) -> None:
    blocks = {(session, 0): BLOCK for session in range(9)}
    async with stage(ScriptedBrowser(num_egresses=num_egresses, blocks=blocks), browsers=OTHERS) as on:
        await on.admit(builders.task())
        ended = await on.ended()
        await on.all_acknowledged()
        assert len(on.browser.sessions) == num_attempts
    assert (ended.outcome, ended.attempt) == (Outcome.BLOCKED, num_attempts)
    assert [met.attempt for met in ended.blockages] == list(range(1, num_attempts + 1))


async def test_a_hook_has_it_lifted() -> None:
    block_hooks.TOLD.clear()
    async with stage(ScriptedBrowser(blocks={(0, 0): BLOCK}), browsers=hooked("lifts")) as on:
        await on.admit(builders.task())
        _, wake = await on.wake()
        assert not (await on.observation(wake)).error
        await on.answer(wake)
        ended = await on.ended()
    assert ended.outcome is Outcome.DONE
    assert ended.blockages == (msgspec.structs.replace(BLOCK, egress=FIRST, attempt=1, lifted=True),)
    (told,) = block_hooks.TOLD
    assert told.startswith("t1: site let nobody in: recaptcha, its captcha is shown (HTTP 403) at http://site/ (")


@pytest.mark.parametrize(("name", "timeout_s"), [("gives_up", 600.0), ("fails", 600.0), ("never", 0.05), ("wait", 0.05)])
async def test_a_hook_that_does_not_help_leaves_the_block(name: str, timeout_s: float) -> None:
    async with stage(ScriptedBrowser(blocks={(0, 0): BLOCK}), browsers=hooked(name, timeout_s)) as on:
        await on.admit(builders.task())
        ended = await on.ended()
    assert ended.outcome is Outcome.BLOCKED
    assert not ended.blockages[0].lifted


async def test_the_example_shows_a_person_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOCKS", str(tmp_path))
    config = BrowserConfig(on_block="hook", block_hook=f"{EXAMPLES}/own_block_hook.py:desk")
    browser = ScriptedBrowser(blocks={(0, 0): BLOCK})
    async with stage(browser, browsers=config) as on:
        await on.admit(builders.task())
        with anyio.fail_after(HANGS_S):
            while not [shown async for shown in anyio.Path(tmp_path).glob("*.jpg")]:
                await anyio.lowlevel.checkpoint()
        browser.blocks.clear()
        (tmp_path / f"{builders.task().episode}.jpg").unlink()
        _, wake = await on.wake()
        await on.answer(wake)
        ended = await on.ended()
    assert (ended.outcome, ended.blockages[0].lifted) == (Outcome.DONE, True)


async def test_a_hook_takes_nothing_of_the_tasks_time() -> None:
    task = msgspec.structs.replace(builders.task(), timeout_s=block_hooks.OUTLASTS_S - 0.5)
    browser = ScriptedBrowser(blocks={(0, 0): BLOCK})
    async with stage(browser, browsers=hooked("outlasts")) as on:
        await on.admit(task)
        _, wake = await on.wake()
        await on.answer(wake)
        ended = await on.ended()
    assert ended.outcome in (Outcome.DONE, Outcome.TIMED_OUT)
    assert ended.num_observations == 1
    assert ended.timings.waited_s >= block_hooks.OUTLASTS_S
    assert ended.timings.reset_s < ended.timings.total_s - block_hooks.OUTLASTS_S + 0.1


async def test_what_cannot_work_is_refused() -> None:
    for keys in ({"on_block": "hook"}, {"on_block": "other_identity"}, {"on_block": "other_identity", "proxies": (FIRST,)}):
        with pytest.raises(ConfigurationError, match=r"browser_config\.on_block"):
            BrowserConfig(**keys)
    with pytest.raises(ConfigurationError, match="block_hook"):
        async with stage(browsers=BrowserConfig(on_block="hook", block_hook="no_such_hook")):
            pass
