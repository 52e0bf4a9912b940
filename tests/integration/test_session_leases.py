"""Sessions of a provider that fails in every way: what an episode gets, and what is left, by the provider's own count."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import pytest

from browser_workers.providers.choosing import provider_of
from browser_workers.providers.leases import Leases, Owner
from schemas.browser_config import BrowserConfig
from schemas.errors import BrowserLost, ConfigurationError
from schemas.provider_requirements import HELD
from tests.deadlines import HANGS_S
from tests.support.browsers.provided_doubles import Nothing
from tests.support.browsers.scripted_provider import KEY, Fault, ScriptedProvider, scripted_provider

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
MINE, OTHER = Owner("run-1", "browser-1"), Owner("run-1", "browser-2")
WAIT_S = HANGS_S


def faulty(*faults: Fault) -> Callable[[int], Fault]:
    """Of the first requests; all others work."""
    return lambda number: faults[number] if number < len(faults) else Fault.NONE


def config(provider: ScriptedProvider, **changes: object) -> BrowserConfig:
    return BrowserConfig(provider="browserbase", provider_url=provider.url, **changes)  # type: ignore[arg-type]


@asynccontextmanager
async def holding(
    provider: ScriptedProvider,
    owner: Owner = MINE,
    *,
    key: str = KEY,
    wait_s: float = WAIT_S,
    figures: dict[str, float] | None = None,
) -> AsyncIterator[Leases]:
    made = provider_of(config(provider), {"BROWSERBASE_API_KEY": key})
    with anyio.fail_after(HANGS_S):
        async with Leases(made, owner, wait_s=wait_s, figures=figures) as leases:
            yield leases


def reasons(provider: ScriptedProvider) -> list[str]:
    return [session.why_ended for session in provider.sessions.values()]


async def test_a_session_is_an_episodes_and_says_so() -> None:
    figures: dict[str, float] = {}
    began = time.time()
    async with scripted_provider(Nothing()) as provider, holding(provider, figures=figures) as leases:
        async with leases.lease("e" * 500) as lease:
            (session,) = provider.running
            assert lease.place.is_session
            assert figures["sessions"] == 1
        assert reasons(provider) == ["released"]
    said = dict(session.carried)
    assert (said["run"], said["worker"], said["episode"]) == ("run-1", "browser-1", "e" * 100)
    assert began + HELD * 1800 - 1 <= float(said["until"]) <= time.time() + HELD * 1800 + 1
    assert session.asked["timeout"] == 1800
    assert session.asked["keepAlive"] is False
    assert session.asked["browserSettings"] == {
        "viewport": {"width": 1280, "height": 768},
        "recordSession": False,
        "logSession": False,
        "solveCaptchas": False,
    }
    assert figures.pop("session_s") > 0
    assert figures == {"sessions": 0, "sessions_opened": 1, "sessions_lost": 0, "session_proxy_mb": 1.0}


async def test_what_the_account_is_asked_for_beside() -> None:
    async with scripted_provider(Nothing()) as provider:
        asked = config(provider, provider_project="p", provider_region="eu-central-1", provider_proxies=True)
        async with Leases(provider_of(asked, {"BROWSERBASE_API_KEY": KEY}), MINE) as leases, leases.lease("e"):
            (session,) = provider.running
    assert {name: session.asked[name] for name in ("projectId", "region", "proxies")} == {
        "projectId": "p",
        "region": "eu-central-1",
        "proxies": True,
    }


async def test_an_account_that_is_full_is_waited_for() -> None:
    figures: dict[str, float] = {}
    async with scripted_provider(Nothing(), most=1) as provider, holding(provider, figures=figures) as leases:

        async def play() -> None:
            async with leases.lease("second"):
                assert provider.most_at_once == 1

        async with leases.lease("first"), anyio.create_task_group() as group:
            group.start_soon(play)
            await provider.until(lambda provider: provider.num_full > 0)
            # The first ends while the second waits.
            await provider.finish(provider.running[0], "by itself")
    assert figures["session_wait_s"] >= 1.0, "as long as the provider asked for"
    assert "session_failures" not in figures, "that is none"


async def test_an_account_that_stays_full_is_a_browser_that_is_lost() -> None:
    async with scripted_provider(Nothing(), most=0) as provider, holding(provider, wait_s=0.0) as leases:
        with pytest.raises(BrowserLost, match="as many sessions as it may"):
            async with leases.lease("e"):
                pass


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.UNANSWERED])
async def test_a_session_that_is_not_had_is_asked_for_again_and_none_is_left(fault: Fault) -> None:
    async with scripted_provider(Nothing(), faults=faulty(fault, fault)) as provider, holding(provider) as leases:
        async with leases.lease("e") as lease:
            assert provider.num_asked == 3
            await leases.look()
            assert [session.id for session in provider.running] == [lease.provided.id]
        assert not provider.running


async def test_of_two_that_are_opened_for_one_request_the_other_is_ended() -> None:
    async with (
        scripted_provider(Nothing(), faults=faulty(Fault.DOUBLED)) as provider,
        holding(provider) as leases,
        leases.lease("e") as lease,
    ):
        assert len(provider.sessions) == 2
        await leases.look()
        assert [session.id for session in provider.running] == [lease.provided.id]


async def test_one_that_expires_is_noticed_though_its_connection_stands() -> None:
    async with (
        scripted_provider(Nothing(), faults=faulty(Fault.EXPIRED), lives_s=0.0) as provider,
        holding(provider) as leases,
        leases.lease("e") as lease,
        leases.lease("another") as other,
    ):
        await provider.until(lambda provider: not provider.sessions[lease.provided.id].is_running)
        await leases.look()
        assert lease.ended.is_set()
        assert "TIMED_OUT" in lease.why_ended
        assert not other.ended.is_set()


async def test_a_release_that_fails_is_made_up_for() -> None:
    async with scripted_provider(Nothing(), faults=faulty(Fault.NOT_ENDED)) as provider, holding(provider) as leases:
        async with leases.lease("e"):
            pass
        await leases.look()
        assert reasons(provider) == ["released"]


async def test_a_worker_ends_what_its_predecessor_left_and_nothing_of_others() -> None:
    async with scripted_provider(Nothing()) as provider:
        for owner in (MINE, OTHER, Owner("run-2", "browser-1")):
            await left_by(provider, owner)
        async with holding(provider) as leases:
            await leases.look()
            assert [session.carried["worker"] for session in provider.running] == ["browser-2", "browser-1"]
            assert provider.running[1].carried["run"] == "run-2"


async def test_what_another_worker_left_is_ended_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted_provider(Nothing()) as provider:
        await left_by(provider, OTHER)
        async with holding(provider) as leases, leases.lease("mine") as lease:
            await leases.look()
            assert len(provider.running) == 2
            now = time.time()
            monkeypatch.setattr("time.time", lambda: now + HELD * 1800 + 1)
            await leases.look()
            assert not provider.running
            assert "held for 80% of its lease" in lease.why_ended, "its own as well, and its episode hears of it"


async def left_by(provider: ScriptedProvider, owner: Owner) -> None:
    """As behind a kill: opened, and never ended."""
    made = provider_of(config(provider), {"BROWSERBASE_API_KEY": KEY})
    leases = Leases(made, owner)
    await leases._open("e")
    await made.close()


async def test_one_that_comes_while_its_worker_leaves_is_ended() -> None:
    async with scripted_provider(Nothing(), faults=faulty(Fault.SLOW), slow_s=0.5) as provider:

        async def play(leases: Leases) -> None:
            async with leases.lease("e"):
                raise AssertionError("it was given up")

        async with holding(provider) as leases, anyio.create_task_group() as group:
            group.start_soon(play, leases)
            await provider.until(lambda provider: provider.num_asked > 0)
            group.cancel_scope.cancel()
        # It comes behind its worker's last look, and is the next one's, of the same name.
        await provider.until(lambda provider: len(provider.sessions) > 0)
        async with holding(provider) as leases:
            await leases.look()
            assert not provider.running


async def test_a_key_that_is_refused_ends_the_worker_and_is_shown_to_nobody(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    async with scripted_provider(Nothing()) as provider:
        async with holding(provider, key="wrong-secret") as leases:
            with pytest.raises(ConfigurationError, match="refuses the key in BROWSERBASE_API_KEY") as refused:
                async with leases.lease("e"):
                    pass
        async with holding(provider) as leases, leases.lease("e") as lease:
            shown = f"{refused.value!r} {lease!r}"
        assert provider.num_strangers
    said = shown + caplog.text + "".join(capsys.readouterr())
    assert KEY not in said
    assert "secret" not in said


async def test_a_key_that_is_refused_behind_a_session_is_a_browser_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted_provider(Nothing()) as provider, holding(provider, wait_s=0.0) as leases:
        async with leases.lease("e"):
            pass
        monkeypatch.setattr("tests.support.browsers.scripted_provider.KEY", "another")
        with pytest.raises(BrowserLost, match="refuses the key in BROWSERBASE_API_KEY"):
            async with leases.lease("e"):
                pass


async def test_a_provider_that_is_not_there_is_a_browser_that_is_lost() -> None:
    async with scripted_provider(Nothing()) as gone:
        pass
    async with holding(gone, wait_s=0.0) as leases:
        with pytest.raises(BrowserLost, match="the session provider cannot be reached"):
            async with leases.lease("e"):
                pass


async def test_what_is_refused_for_good_is_said_to_people() -> None:
    async with scripted_provider(Nothing()) as provider:
        made = provider_of(config(provider), {"BROWSERBASE_API_KEY": KEY})
        async with Leases(made, Owner("r" * 500, "w")) as leases:
            with pytest.raises(
                ConfigurationError, match=r"refuses what browser_config.provider_\* asks for \(400\): .*too much"
            ):
                async with leases.lease("e"):
                    pass


async def test_an_address_at_which_no_sessions_are_opened_is_said_to_people() -> None:
    """As of the API's own path written twice."""
    async with scripted_provider(Nothing()) as provider:
        twice = BrowserConfig(provider="browserbase", provider_url=f"{provider.url}/v1")
        async with Leases(provider_of(twice, {"BROWSERBASE_API_KEY": KEY}), MINE, wait_s=WAIT_S) as leases:
            with pytest.raises(ConfigurationError, match=r"refuses what browser_config.provider_\* asks for \(404\)"):
                async with leases.lease("e"):
                    pass


async def test_whatever_ends_an_episode_ends_its_session() -> None:
    async with scripted_provider(Nothing()) as provider, holding(provider) as leases:
        held = anyio.Event()

        async def play() -> None:
            async with leases.lease("e"):
                held.set()
                await anyio.sleep_forever()

        async with anyio.create_task_group() as group:
            group.start_soon(play)
            await held.wait()
            group.cancel_scope.cancel()
        with suppress(BrowserLost):
            async with leases.lease("e"):
                raise BrowserLost("in the middle")
        assert reasons(provider) == ["released"] * 2
