"""The gate behind proxies on real sockets: where they are asked to lead, and what a failing one costs."""

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest
import structlog

from browser_workers.network import egress, gate, race, tunnel
from browser_workers.network.egress import Egresses
from browser_workers.network.gate import Gate
from browser_workers.network.proxies import egresses_of
from browser_workers.network.rules import Rules
from schemas.browser_config import BrowserConfig
from schemas.proxy_address import parse_proxy
from tests.deadlines import HANGS_S
from tests.support.browsers.gate_callers import answer_of, ask, serving
from tests.support.browsers.local_site import Reply, local_site
from tests.support.browsers.scripted_proxy import Kind, scripted_proxy
from tests.support.browsers.staged_network import StagedNetwork


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


pytestmark = [pytest.mark.anyio, pytest.mark.integration]
PUBLIC, SIXTH = "93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"
NAMES = {
    "site.example": ((PUBLIC,),),
    "sixth.example": ((SIXTH,),),
    "inside.example": (("10.0.0.5",),),
    "shop.corp": (("10.0.0.7",),),
}
KINDS: tuple[Kind, ...] = ("http", "socks5")
BOTH = pytest.mark.parametrize("kind", KINDS)


def egresses(*urls: str, cooldown_s: float = 60.0, looks_up: bool = False) -> Egresses:
    return Egresses([parse_proxy(url) for url in urls], looks_up=looks_up, cooldown_s=cooldown_s)


def gate_behind(chosen_from: Egresses, network: StagedNetwork | None = None, rules: Rules = Rules()) -> Gate:  # noqa: B008 - a value
    staged = network or StagedNetwork(NAMES, served={})
    return Gate(rules, staged.network, egress=chosen_from.choose("site.example"))


async def page_of(gate: Gate, host: str) -> bytes:
    stream, answer = await ask(gate, host, 80)
    async with stream:
        assert answer is HTTPStatus.OK, gate.why_blocked(host)
        await stream.send(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        heard = b""
        with anyio.fail_after(HANGS_S):
            while not heard.endswith(b"welcome"):
                heard += await stream.receive()
        return heard


@BOTH
@pytest.mark.parametrize("user", ["", "mine"])
async def test_a_proxy_is_asked_for_the_very_address_that_was_judged(kind: Kind, user: str) -> None:
    async with (
        local_site({"/": Reply(b"welcome")}) as site,
        scripted_proxy(kind, site.port, user=user, password="wo:rd@") as proxy,
    ):
        url = proxy.url_with("wo%3Ard%40") if user else proxy.url
        async with serving(gate_behind(egresses(url))) as gate:
            await page_of(gate, "site.example")
            await page_of(gate, "sixth.example")
            await page_of(gate, PUBLIC)
        assert proxy.asked == [(PUBLIC, 80), (SIXTH, 80), (PUBLIC, 80)]
        assert proxy.num_strangers == 0


@BOTH
async def test_names_may_be_the_proxys_to_look_up(kind: Kind) -> None:
    staged = StagedNetwork(NAMES, served={})
    async with local_site({"/": Reply(b"welcome")}) as site, scripted_proxy(kind, site.port) as proxy:
        async with serving(gate_behind(egresses(proxy.url, looks_up=True), staged)) as gate:
            await page_of(gate, "site.example")
        assert proxy.asked == [("site.example", 80)]
        assert staged.looked_up == []


@BOTH
@pytest.mark.parametrize("name", ["x" * 64 + ".example", "a..example"])
async def test_a_name_that_no_proxy_can_be_told_fails_alone(kind: Kind, name: str) -> None:
    """SOCKS spells neither; what HTTP's proxies make of them is theirs."""
    async with local_site({"/": Reply(b"welcome")}) as site, scripted_proxy(kind, site.port) as proxy:
        proxies = egresses(proxy.url, looks_up=True)
        async with serving(gate_behind(proxies)) as gate:
            expected = HTTPStatus.OK if kind == "http" else HTTPStatus.BAD_GATEWAY
            assert await answer_of(gate, name, 80) is expected
            assert kind == "http" or f"{name} is a name that the proxy {proxy.url} cannot be told" in gate.why_blocked(name)
            await page_of(gate, "site.example")
        assert proxies.num_cooling == 0


PRIVATE = {
    "local": ("127.0.0.1", "localhost", "10.0.0.5", "169.254.169.254", "[::1]", "[::ffff:10.0.0.5]", "inside.example"),
    "remote": (
        "127.0.0.1",
        "localhost",
        "10.0.0.5",
        "169.254.169.254",
        "[::1]",
        "intranet",
        "wiki.corp",
        "x.internal",
        "nas.lan",
    ),
}


@BOTH
@pytest.mark.parametrize("dns", list(PRIVATE))
async def test_what_is_private_is_refused_all_the_same(kind: Kind, dns: str) -> None:
    staged = StagedNetwork(NAMES, served={})
    async with local_site({"/": Reply(b"welcome")}) as site, scripted_proxy(kind, site.port) as proxy:
        async with serving(gate_behind(egresses(proxy.url, looks_up=dns == "remote"), staged)) as gate:
            for host in PRIVATE[dns]:
                assert await answer_of(gate, host, 80) is HTTPStatus.FORBIDDEN
                assert "browser_config.private_hosts" in gate.why_blocked(host)
        assert proxy.asked == []
        assert staged.connected == []


@BOTH
@pytest.mark.parametrize("looks_up", [False, True])
async def test_what_a_person_opened_of_private_networks_is_connected_to_directly(kind: Kind, looks_up: bool) -> None:
    rules = Rules(private_names=("shop.corp",), private_networks=(ip_network("10.0.0.5"),))
    async with local_site({"/": Reply(b"welcome")}) as site, scripted_proxy(kind, site.port) as proxy:
        staged = StagedNetwork(NAMES, served={"10.0.0.7": site.port, "10.0.0.5": site.port})
        async with serving(gate_behind(egresses(proxy.url, looks_up=looks_up), staged, rules)) as gate:
            await page_of(gate, "shop.corp")
            await page_of(gate, "10.0.0.5")
        assert proxy.asked == []
        assert staged.connected == [("10.0.0.7", 80), ("10.0.0.5", 80)]


async def test_the_environment_names_a_proxy_and_who_goes_without() -> None:
    async with local_site({"/": Reply(b"welcome")}) as site, scripted_proxy("http", site.port) as proxy:
        staged = StagedNetwork({**NAMES, "www.direct.example": ((PUBLIC,),)}, served={PUBLIC: site.port})
        environment = {"HTTPS_PROXY": proxy.url, "no_proxy": "localhost, .direct.example,10.0.0.0/8"}
        chosen_from = egresses_of(BrowserConfig(proxies=("environment",)), environment)
        async with serving(gate_behind(chosen_from, staged)) as gate:
            await page_of(gate, "www.direct.example")
            assert (staged.connected, proxy.asked) == ([(PUBLIC, 80)], [])
            await page_of(gate, "site.example")
            assert proxy.asked == [(PUBLIC, 80)]


@dataclass(frozen=True)
class Failing:
    manner: str
    says: str
    cools: bool


FAILING = {
    "wrong password": Failing("works", "the proxy {name} answered", cools=True),
    "dead": Failing("dead", "the proxy {name} cannot be reached", cools=True),
    "closes": Failing("closes", "the proxy {name} ", cools=True),
    "resets": Failing("resets", "the proxy {name} broke off: ", cools=True),
    "cannot": Failing("cannot", "the proxy {name} answered", cools=False),
    "silent": Failing("silent", "the proxy {name} did not answer within 0.2 s", cools=False),
}


@BOTH
@pytest.mark.parametrize("case", list(FAILING))
async def test_a_failing_proxy_is_named_and_left_alone_for_a_while(
    kind: Kind, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = FAILING[case]
    if failing.manner == "silent":
        monkeypatch.setattr(tunnel, "_ANSWER_S", 0.2)
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(local_site({"/": Reply(b"welcome")}))
        good = await stack.enter_async_context(scripted_proxy(kind, site.port))
        manner = "works" if failing.manner == "dead" else failing.manner
        async with scripted_proxy(kind, site.port, user="mine", password="right", manner=manner) as bad:  # type: ignore[arg-type]
            url, name = bad.url_with("wrong" if case == "wrong password" else "right"), f"{kind}://127.0.0.1:{bad.port}"
            proxies = egresses(url, good.url)
            gate = gate_behind(proxies)
            if failing.manner != "dead":
                await _fails(gate, failing.says.format(name=name))
        if failing.manner == "dead":
            await _fails(gate, failing.says.format(name=name))
        assert proxies.num_cooling == int(failing.cools)
        next_ones = [proxies.choose("site.example") for _ in range(4)]
        names = {egress.name for egress in next_ones if egress is not None}
        assert names == ({f"{kind}://127.0.0.1:{good.port}"} if failing.cools else {name, f"{kind}://127.0.0.1:{good.port}"})


@pytest.mark.parametrize("password", ["pässwörd", "p" * 256])
async def test_a_password_that_socks_cannot_say_fails_like_a_wrong_one(password: str) -> None:
    async with scripted_proxy("socks5", 9, user="mine", password=password) as proxy:
        proxies = egresses(proxy.url_with(quote(password)))
        says = f"the proxy socks5://127.0.0.1:{proxy.port} takes users and passwords of at most 255 ASCII characters alone"
        await _fails(gate_behind(proxies), says, secrets=(password, "mine"))
        assert proxies.num_cooling == 1


async def test_an_answer_that_no_socks_gives_is_the_proxys_fault() -> None:
    async with scripted_proxy("socks5", 9, manner="garbles") as proxy:
        proxies = egresses(proxy.url)
        await _fails(gate_behind(proxies), f"the proxy {proxy.url} answered what is no SOCKS")
        assert proxies.num_cooling == 1


async def _fails(gate: Gate, said: str, secrets: Sequence[str] = ("wrong", "right", "mine")) -> None:
    with structlog.testing.capture_logs() as logs:
        async with serving(gate):
            assert await answer_of(gate, "site.example", 80) is HTTPStatus.BAD_GATEWAY
            why = gate.why_blocked("site.example")
    assert said in why
    assert not [secret for secret in secrets if secret in f"{why}{logs}"]


@BOTH
async def test_a_proxy_that_is_silent_three_times_in_a_row_cools_down(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnel, "_ANSWER_S", 0.1)
    async with scripted_proxy(kind, 9, manner="silent") as proxy:
        proxies = egresses(proxy.url)
        async with serving(gate_behind(proxies)) as gate:
            for number in range(3):
                assert proxies.num_cooling == 0, number
                await answer_of(gate, "site.example", 80)
        assert proxies.num_cooling == 1
        chosen = proxies.choose("site.example")
        assert chosen is not None
        assert chosen.name == proxy.url


async def test_silence_counts_once_a_connection_however_many_addresses_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "_NEXT_S", 0.01)
    monkeypatch.setattr(tunnel, "_ANSWER_S", 0.2)
    staged = StagedNetwork({"many.example": ((PUBLIC, SIXTH, "93.184.215.15"),)}, served={})
    async with scripted_proxy("http", 9, manner="silent") as proxy:
        proxies = egresses(proxy.url)
        async with serving(gate_behind(proxies, staged)) as opened:
            for number in range(3):
                assert proxies.num_cooling == 0, number
                assert await answer_of(opened, "many.example", 80) is HTTPStatus.BAD_GATEWAY
        assert proxies.num_cooling == 1


async def test_whoever_went_after_a_long_wait_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress, "_SILENT_S", 0.0)
    monkeypatch.setattr(gate, "_CONNECT_S", 0.1)
    async with scripted_proxy("http", 9, manner="silent") as proxy:
        proxies = egresses(proxy.url)
        num_asked = 0
        async with serving(gate_behind(proxies)) as opened:
            with anyio.fail_after(HANGS_S):
                while proxies.num_cooling == 0:
                    # On a machine that is slow it may be over before the proxy is asked, which is no silence.
                    assert await answer_of(opened, "site.example", 80) is HTTPStatus.GATEWAY_TIMEOUT
                    num_asked += 1
        assert num_asked >= 3


@BOTH
async def test_a_proxy_without_ipv6_works(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one address of a connection is left without is no silence of the proxy, which answers for another."""
    monkeypatch.setattr(race, "_NEXT_S", 0.01)
    monkeypatch.setattr(egress, "_SILENT_S", 0.0)
    staged = StagedNetwork({"both.example": ((SIXTH, PUBLIC),)}, served={})
    async with local_site({"/": Reply(b"welcome")}) as site, scripted_proxy(kind, site.port, manner="drops ipv6") as proxy:
        proxies = egresses(proxy.url)
        async with serving(gate_behind(proxies, staged)) as opened, anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(page_of, opened, "both.example")
        assert proxies.num_cooling == 0


async def test_a_proxy_that_says_more_than_its_answer_is_not_gone_through() -> None:
    async with (
        local_site({}) as site,
        scripted_proxy("http", site.port, manner="talks") as proxy,
        serving(gate_behind(egresses(proxy.url))) as gate,
    ):
        assert await answer_of(gate, "site.example", 80) is HTTPStatus.BAD_GATEWAY
        assert "it sent more than its answer" in gate.why_blocked("site.example")


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        ("http://user:secret@h:1\n", 0o644, "can be read by others: chmod 600"),
        ("# one a line\n\nhttp://user:secret@h:1\nuser:secret@h:1\n", 0o600, "line 4 of"),
        ("# nothing yet\n", 0o600, "has no proxy: write one a line"),
        ("http://user:secret@h:1\n\udcff", 0o600, "is not UTF-8 text"),
    ],
)
def test_a_file_of_proxies_is_refused_without_a_word_of_what_it_holds(
    content: str, mode: int, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "proxies"
    file.write_bytes(os.fsencode(content))
    file.chmod(mode)
    with pytest.raises(Exception, match=says) as refused:
        egresses_of(BrowserConfig(proxies_file=str(file)))
    assert "secret" not in str(refused.value)
