"""What pages may reach, by value."""

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from browser_workers.network.addresses import assumed, kind, literal, plain
from browser_workers.network.names import in_turn
from browser_workers.network.refusals import Refusals
from browser_workers.network.rules import Endpoint, Rules, endpoint, normal_host, rules_for
from schemas.browser_config import BrowserConfig
from schemas.errors import ConfigurationError

PUBLIC = ip_address("93.184.215.14")
LOOPBACK = ip_address("127.0.0.1")
METADATA = ip_address("169.254.169.254")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("93.184.215.14", ""),
        ("2606:2800:21f::1", ""),
        ("::ffff:93.184.215.14", ""),
        ("64:ff9b::5db8:d70e", ""),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("127.0.0.1", "loopback"),
        ("127.255.0.9", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("2002:7f00:1::", "loopback"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("192.168.0.1", "private"),
        ("::ffff:10.0.0.1", "private"),
        ("::10.0.0.1", "private"),
        ("100.64.0.1", "private"),
        ("198.18.0.1", "private"),
        ("240.0.0.1", "private"),
        ("255.255.255.255", "private"),
        ("fc00::1", "private"),
        ("fd12::1", "private"),
        ("fec0::1", "private"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("169.254.169.254", "metadata"),
        ("168.63.129.16", "metadata"),
        ("100.100.100.200", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("::ffff:169.254.169.254", "metadata"),
        ("64:ff9b::a9fe:a9fe", "metadata"),
        ("2002:a9fe:a9fe::", "metadata"),
        ("2001:0:4136:e378:8000:63bf:5601:5601", "metadata"),
        ("64:ff9b:1::1", "private"),
        ("5f00::1", "private"),
        ("fe80::1%lo", "link-local"),
    ],
)
def test_what_kind_an_address_is(text: str, expected: str) -> None:
    found = kind(ip_address(text))
    assert expected in found
    assert bool(found) == bool(expected)


@pytest.mark.parametrize("text", ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "[::ffff:7f00:1]"])
def test_every_form_of_an_address_is_one(text: str) -> None:
    address = literal(normal_host(text))
    assert address is not None
    assert "loopback" in kind(address)


@pytest.mark.parametrize("text", ["example.org", "1password.com", "localhost", "a.b", ""])
def test_names_are_no_addresses(text: str) -> None:
    assert literal(text) is None


def test_what_can_be_said_without_a_look_up() -> None:
    assert assumed("localhost") == assumed("a.localhost") == (LOOPBACK, ip_address("::1"))
    assert assumed("0x7f.1") == (LOOPBACK,)
    assert assumed("example.org") == assumed("localhost.example.org") == ()


def test_hosts_have_one_spelling() -> None:
    assert normal_host("EXAMPLE.org.") == "example.org"
    assert normal_host("bücher.example") == "xn--bcher-kva.example"
    assert normal_host("[::1]") == "::1"
    assert endpoint("http://[::1]:8080/x") == Endpoint("::1", 8080)
    assert endpoint("wss://Example.org/x") == Endpoint("example.org", 443)
    for nowhere in ("data:text/html,x", "about:blank", "http://[x", "http://a:99999/"):
        assert endpoint(nowhere) is None


def test_public_hosts_are_open_and_private_ones_closed_by_default() -> None:
    rules = Rules()
    assert rules.refusal("example.org", 443, PUBLIC) == ""
    assert rules.refusal("127.0.0.1", 80, LOOPBACK) == (
        "127.0.0.1:80 is a loopback address: pages reach it only where browser_config.private_hosts has 127.0.0.1"
    )
    assert rules.refusal("evil.example", 80, LOOPBACK) == (
        "evil.example:80 is at 127.0.0.1, which is a loopback address: "
        "pages reach it only where browser_config.private_hosts has evil.example"
    )
    assert rules.refusal("evil.example", 80, METADATA).endswith("browser_config.private_hosts has 169.254.169.254")
    assert rules.refusal("evil.example", 80, ip_address("::ffff:169.254.169.254")).endswith("has 169.254.169.254")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/", "http://[::1]:8080/", "http://10.0.0.1:8080/x", "http://2130706433:8080"]
)
def test_a_tasks_own_address_is_open_at_its_own_port(url: str) -> None:
    rules = rules_for(BrowserConfig(), url)
    own = endpoint(url)
    assert own is not None
    address = ip_address(own.host)
    assert rules.refusal(own.host, 8080, address) == ""
    assert "private_hosts" in rules.refusal(own.host, 22, address)
    assert "private_hosts" in rules.refusal("other.example", 8080, address)
    assert "private_hosts" in rules.refusal(own.host, 8080, ip_address("127.0.0.2"))


def test_localhost_is_an_address_of_this_machine() -> None:
    rules = rules_for(BrowserConfig(), "http://localhost/")
    assert [rules.refusal("localhost", port, address) for port in (80, 443) for address in assumed("localhost")] == [""] * 4
    assert "private_hosts" in rules.refusal("localhost", 8080, LOOPBACK)
    assert "private_hosts" in rules.refusal("127.0.0.1", 80, LOOPBACK)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "fd00:ec2::254", "::ffff:10.0.0.1", "0.0.0.0"]
)
def test_a_tasks_own_name_opens_nothing_by_where_it_leads(address: str) -> None:
    rules = rules_for(BrowserConfig(), "http://shop.example:8080/")
    assert rules.refusal("shop.example", 8080, PUBLIC) == ""
    assert "browser_config.private_hosts" in rules.refusal("shop.example", 8080, ip_address(address))


def test_a_name_that_a_person_wrote_may_lead_to_sites_of_ones_own() -> None:
    rules = rules_for(BrowserConfig(private_hosts=("Shop.Example",)), "")
    for open_to in ("127.0.0.1", "10.0.0.1", "fd12::1", "100.64.0.1", "::ffff:192.168.0.1"):
        assert rules.refusal("shop.example", 80, ip_address(open_to)) == ""
        assert rules.refusal("img.shop.example", 80, ip_address(open_to)) == ""
        assert "private_hosts" in rules.refusal("badshop.example", 80, ip_address(open_to))
    for closed in ("169.254.169.254", "fd00:ec2::254", "169.254.1.1", "0.0.0.0", "224.0.0.1", "64:ff9b::a9fe:a9fe"):
        assert f"has {plain(ip_address(closed))}" in rules.refusal("shop.example", 80, ip_address(closed))


def test_addresses_and_networks_that_a_person_wrote_are_open() -> None:
    rules = rules_for(BrowserConfig(private_hosts=("10.20.0.0/16", "169.254.169.254", "[fd12::1]", "0x7f.1")), "")
    for host in ("10.20.3.4", "::ffff:10.20.3.4", "169.254.169.254", "fd12::1", "127.0.0.1"):
        assert rules.refusal("a.example", 80, ip_address(host)) == rules.refusal(host, 80, ip_address(host)) == ""
    for host in ("10.21.0.1", "169.254.169.253", "fd12::2", "127.0.0.2"):
        assert "private_hosts" in rules.refusal("a.example", 80, ip_address(host))


def test_denied_hosts_come_first() -> None:
    rules = Rules(
        denied_hosts=("ads.example", "93.184.215.14"),
        allowed_hosts=("ads.example", "example.org"),
        private_networks=(ip_network("0.0.0.0/0"),),
        own=Endpoint("ads.example", 80),
    )
    for host in ("ads.example", "a.b.ads.example"):
        assert rules.refusal(host, 80) == f"{host} is refused by browser_config.denied_hosts"
    assert "denied_hosts" in rules.refusal("example.org", 443, PUBLIC)
    assert "denied_hosts" in rules.refusal("::ffff:93.184.215.14", 443, ip_address("::ffff:93.184.215.14"))
    assert rules.refusal("example.org", 443, ip_address("1.1.1.1")) == ""


def test_allowed_hosts_close_everything_else_but_the_tasks_own_site() -> None:
    rules = Rules(allowed_hosts=("example.org",), own=Endpoint("www.shop.example", 443))
    for host in ("example.org", "a.example.org", "www.shop.example", "shop.example", "img.shop.example"):
        assert rules.refusal(host, 443, PUBLIC) == ""
    for host in ("badexample.org", "example.org.evil.example", "example.com"):
        assert rules.refusal(host, 443) == f"{host} is not among browser_config.allowed_hosts"
    assert "private_hosts" in rules.refusal("a.example.org", 443, LOOPBACK)


def test_the_browsers_own_devtools_are_closed_to_all() -> None:
    config = BrowserConfig(cdp_url="http://127.0.0.1:9222", private_hosts=("0.0.0.0/0", "::/0"))
    rules = rules_for(config, "http://127.0.0.1:9222/")
    for address in ("127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", "0.0.0.0"):
        assert "DevTools" in rules.refusal("localhost", 9222, ip_address(address))
    assert rules.refusal("localhost", 9223, LOOPBACK) == ""
    assert rules_for(BrowserConfig(cdp_url="wss://far.example"), "").devtools_ports == frozenset()
    several = BrowserConfig(cdp_urls=("ws://127.0.0.1:1/x", "http://localhost:2", "wss://far.example"))
    assert rules_for(several, "").devtools_ports == {1, 2}


def test_refusals_are_remembered_for_a_while() -> None:
    refusals = Refusals()
    assert refusals.add("a.example", "because")
    assert not refusals.add("a.example", "because")
    assert refusals.why("A.example.") == "because"
    for number in range(64):
        refusals.add(f"{number}.example", "because")
    assert refusals.why("a.example") == ""
    refusals.forget("1.example")
    assert (refusals.why("1.example"), refusals.why("2.example")) == ("", "because")


@pytest.mark.parametrize(
    "host", ["http://example.org", "example.org/x", "example.org:80", "*.example.org", "", "10.0.0.1/8", "a b", ".example.org"]
)
@pytest.mark.parametrize("key", ["allowed_hosts", "denied_hosts", "private_hosts"])
def test_what_is_no_host_is_said_at_once(key: str, host: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"browser_config\.{key} has .* write a name such as"):
        BrowserConfig(**{key: ("fine.example", host)})  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["allowed_hosts", "denied_hosts"])
def test_networks_are_for_private_hosts_alone(key: str) -> None:
    BrowserConfig(private_hosts=("10.0.0.0/8", "fd00::/8"))
    with pytest.raises(ConfigurationError, match="without scheme"):
        BrowserConfig(**{key: ("10.0.0.0/8",)})  # type: ignore[arg-type]


def test_hosts_may_be_names_and_addresses() -> None:
    BrowserConfig(denied_hosts=("Example.ORG", "bücher.example", "localhost", "10.0.0.1", "::1", "[fd00::1]", "a_b.example"))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9222", "ws://localhost:1/x", "http://[::1]:9", "https://a.example/x", "wss://a.b?c=d"]
)
def test_addresses_of_browsers(url: str) -> None:
    assert BrowserConfig(cdp_url=url).cdp_url == url


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://10.0.0.1:9222", "leads to 10.0.0.1 unencrypted: write https:// or wss://"),
        ("ws://browsers.example/x", "leads to browsers.example unencrypted"),
        ("127.0.0.1:9222", "write the browser's DevTools address"),
        ("ftp://a.example", "write the browser's DevTools address"),
        ("http://", "write the browser's DevTools address"),
        ("http://a:b:c", "write the browser's DevTools address"),
    ],
)
def test_unsafe_addresses_of_browsers_are_refused(url: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        BrowserConfig(cdp_url=url)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"proxies": ("http://h:1", "h:1")}, "entry 2 of browser_config.proxies is no proxy: write scheme, host and port"),
        ({"proxies": ("http://u:secret@h:1",)}, "entry 1 of browser_config.proxies has a password"),
        (
            {"proxies": ("http://h:1",), "cdp_url": "wss://browsers.example/x"},
            "which is on another machine: give it its proxy",
        ),
        ({"proxies_file": "/p", "cdp_url": "wss://browsers.example/x"}, "which is on another machine: give it its proxy"),
        ({"proxy_cooldown_s": -1.0}, "browser_config.proxy_cooldown_s is -1"),
        ({"locale": "English"}, "write a language tag such as en-GB"),
        ({"timezone": "UTC+1 (Berlin)"}, "write a name such as Europe/Berlin"),
        ({"geolocation": "52.5"}, "write degrees of latitude and longitude"),
        ({"geolocation": "13.4,152.5,1"}, "write degrees of latitude and longitude"),
        ({"geolocation": "91,0"}, "write degrees of latitude and longitude"),
        ({"user_agent": "Mine\r\nX: y"}, "write printable ASCII"),
    ],
)
def test_what_no_browser_could_be_told_is_refused(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        BrowserConfig(**keys)
    assert sentence in str(error.value)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("name", ["intranet", "wiki.corp", "db.internal", "printer.local", "nas.lan", "router.home.arpa"])
def test_names_of_private_networks_are_nobody_elses_to_look_up(name: str) -> None:
    assert Rules().refusal_of_private_name(name)
    assert not Rules().is_looked_up_here(name)
    assert rules_for(BrowserConfig(private_hosts=(name,)), "").is_looked_up_here(f"x.{name}")


@pytest.mark.parametrize("name", ["site.example", "local.example", "internal-wiki.example", "xn--p1ai.xn--p1ai"])
def test_public_names_may_be(name: str) -> None:
    assert not Rules().refusal_of_private_name(name)


@pytest.mark.parametrize(
    ("found", "tried"),
    [
        (("2001:db8::1", "2001:db8::2", "192.0.2.1", "192.0.2.2"), ("2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2")),
        (("192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"), ("192.0.2.1", "2001:db8::1", "192.0.2.2", "192.0.2.3")),
        (("192.0.2.1", "192.0.2.2"), ("192.0.2.1", "192.0.2.2")),
        ((), ()),
    ],
)
def test_kinds_of_addresses_take_turns(found: tuple[str, ...], tried: tuple[str, ...]) -> None:
    assert in_turn(tuple(map(ip_address, found))) == tuple(map(ip_address, tried))
