"""Which proxy an episode takes; who is left alone, and for how long."""

from collections import Counter

import pytest

from browser_workers.network.egress import Egress, Egresses
from browser_workers.network.tunnel import ProxyFailed, ProxySilent
from schemas.proxy_address import ProxyAddress, parse_proxy

NAMES = [f"http://p{number}.example:3128" for number in range(4)]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def of(clock: Clock | None = None, *, per_site: bool = False, names: list[str] = NAMES) -> Egresses:
    return Egresses([parse_proxy(name) for name in names], per_site=per_site, clock=clock or Clock())


def chosen(egresses: Egresses, site: str = "a.example") -> Egress:
    egress = egresses.choose(site)
    assert egress is not None
    return egress


def test_without_proxies_an_episode_goes_out_directly() -> None:
    assert of(names=[]).choose("a.example") is None


def test_episodes_take_turns() -> None:
    egresses = of()
    assert Counter(chosen(egresses).name for _ in range(40)) == dict.fromkeys(NAMES, 10)


def test_a_site_keeps_its_proxy_and_sites_are_spread() -> None:
    one, another = of(per_site=True), of(per_site=True, names=NAMES[::-1])
    sites = [f"site{number}.example" for number in range(200)]
    kept = {site: chosen(one, site).name for site in sites}
    assert {site: chosen(another, site).name for site in reversed(sites)} == kept
    assert min(Counter(kept.values()).values()) > 30


def test_one_address_with_many_users_is_many_proxies() -> None:
    users = [f"http://session-{number}@gateway.example:8000" for number in range(4)]
    egresses = of(per_site=True, names=users)
    taken = Counter(chosen(egresses, f"site{number}.example")._state.proxy.user for number in range(200))
    assert len(taken) == 4
    assert min(taken.values()) > 30


def test_only_the_sites_of_a_failed_proxy_move_and_they_come_back() -> None:
    clock = Clock()
    egresses = of(clock, per_site=True)
    sites = [f"site{number}.example" for number in range(100)]
    before = {site: chosen(egresses, site).name for site in sites}
    _fail(egresses, next(site for site in sites if before[site] == NAMES[2]), ProxyFailed("refused"))
    during = {site: chosen(egresses, site).name for site in sites}
    assert NAMES[2] not in during.values()
    assert {site for site in sites if during[site] != before[site]} == {site for site in sites if before[site] == NAMES[2]}
    clock.now = 60.0
    assert {site: chosen(egresses, site).name for site in sites} == before


def test_where_all_have_failed_the_first_to_be_ready_is_taken() -> None:
    clock = Clock()
    egresses = of(clock, names=NAMES[:2])
    for at in (1.0, 2.0):
        clock.now = at
        _fail(egresses, "a.example", ProxyFailed("refused"))
    assert egresses.num_cooling == 2
    assert [chosen(egresses).name for _ in range(3)] == [NAMES[0]] * 3


def test_silence_counts_only_in_a_row() -> None:
    egresses = of(names=NAMES[:1])
    for failure in (ProxySilent(""), ProxySilent(""), None, ProxySilent(""), ProxySilent("")):
        _fail(egresses, "a.example", failure)
    assert egresses.num_cooling == 0
    _fail(egresses, "a.example", ProxySilent(""))
    assert egresses.num_cooling == 1


def _fail(egresses: Egresses, site: str, failure: ProxyFailed | None) -> None:
    state = chosen(egresses, site)._state
    if failure is None:
        egresses.note_answer(state)
    else:
        egresses.note_failure(state, failure)


@pytest.mark.parametrize(
    ("text", "proxy"),
    [
        ("http://proxy.example:3128", ProxyAddress("http", "proxy.example", 3128)),
        (" socks5://user@10.0.0.1:1080/ ", ProxyAddress("socks5", "10.0.0.1", 1080, "user")),
        ("http://us%40er:p%3Aw@[2001:db8::1]:8080", ProxyAddress("http", "2001:db8::1", 8080, "us@er", "p:w")),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, proxy: ProxyAddress) -> None:
    assert parse_proxy(text) == proxy


@pytest.mark.parametrize(
    "text",
    [
        "proxy.example:3128",
        "http://proxy.example",
        "ftp://u:secret@h:1",
        "http://h:1/secret",
        "http://u:secret@h:99999",
        "http://[:1",
        "http://proxy..example:1",
        f"http://{'x' * 64}.example:1",
        "",
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError, match="write scheme, host and port") as refused:
        parse_proxy(text)
    assert "secret" not in str(refused.value)


def test_a_password_is_in_no_name_and_no_form_of_its_text() -> None:
    proxy = parse_proxy("http://user:secret@[::1]:8080")
    assert proxy.name == "http://[::1]:8080"
    assert "secret" not in repr(proxy)
