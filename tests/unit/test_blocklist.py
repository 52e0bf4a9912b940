"""Which site an address is of, which sites are left out at a time, and what a person may name, by value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.blocklist import Blocklist, block, end_of, read_blocklist
from bus.memory import MemoryBus
from bus.subjects import Subjects
from ops.commands.blocklist import named_site, time_left
from schemas.errors import ConfigurationError
from schemas.messages import SiteBlock
from schemas.site import site_of
from tests.builders import RUN
from trainer.feeding.task_values import normal_website

SUBJECTS = Subjects(RUN)


@pytest.mark.parametrize(
    ("website", "site"),
    [
        ("https://www.example.org:8443/a?b=c#d", "example.org:8443"),
        ("http://example.org", "example.org"),
        ("HTTPS://WWW.Example.ORG/", "example.org"),
        ("https://example.org./", "example.org"),
        ("https://shop.example.org/", "shop.example.org"),
        ("https://www2.example.org/", "www2.example.org"),
        ("https://www.com/", "www.com"),
        ("https://user:secret@example.org/", "example.org"),
        ("example.org", "example.org"),
        ("example.org:8080/a", "example.org:8080"),
        ("https://www.example.org:08080", "example.org:8080"),
        ("https://example.org:443/a", "example.org"),
        ("http://example.org:443/a", "example.org"),
        ("http://www.example.org.:80?a", "example.org"),
        ("localhost:3000", "localhost:3000"),
        ("http://127.0.0.1:8000/x", "127.0.0.1:8000"),
        ("http://[::1]:8000/x", "[::1]:8000"),
        ("http://[::1]/x", "::1"),
        ("[::1]:8000", "[::1]:8000"),
        ("https://bücher.example:8443/", "xn--bcher-kva.example:8443"),
        ("https://a_b.example:65535", "a_b.example:65535"),
        ("https://example.org:65536/", "example.org"),
        ("https://user:word@example.org:7/", "example.org:7"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://www.BÜCHER.example", "xn--bcher-kva.example"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("demo:click_button?seed=1", "demo"),
        ("miniwob:click-test", "miniwob"),
        ("demo", "demo"),
        ("  https://example.org  ", "example.org"),
        ("http://[::1/broken", "http://[::1/broken"),
    ],
)
def test_the_site_of_an_address(website: str, site: str) -> None:
    assert site_of(website) == site
    assert site_of(site) == site, "a site is its own"


@given(st.text())
def test_any_text_has_a_site(website: str) -> None:
    assert site_of(normal_website(website)) is not None


@given(st.from_regex(r"[a-z][a-z0-9_-]{0,8}(\.[a-z0-9_-]{1,8}){0,3}", fullmatch=True), st.data())
def test_no_two_sites_share_a_subject(site: str, data: st.DataObject) -> None:
    other = data.draw(st.sampled_from([site.replace(".", "_"), site.replace("_", "."), site.replace("-", "_"), f"{site}_"]))
    assert (SUBJECTS.blocked(site) == SUBJECTS.blocked(other)) == (site == other)
    assert SUBJECTS.blocked(site).count(".") == 2


def entry(site: str, until: float) -> SiteBlock:
    return SiteBlock(site=site, until=until)


def test_the_newest_word_on_a_site_counts_until_it_is_over() -> None:
    found = Blocklist()
    for given_ in (entry("a.org", 100.0), entry("b.org", 50.0), entry("a.org", 70.0)):
        found.apply(given_, 0.0)
    assert set(found.blocked(49.9)) == {"a.org", "b.org"}
    assert set(found.blocked(50.0)) == {"a.org"}
    assert found.blocked(69.9) == {"a.org": entry("a.org", 70.0)}
    assert found.blocked(70.0) == {}


@pytest.mark.anyio
async def test_zero_hours_lift_a_block() -> None:
    bus = MemoryBus(SUBJECTS)
    await block(bus, SUBJECTS, "a.org", hours=1.0, reason="captcha")
    blocked = await block(bus, SUBJECTS, "a_b.org", hours=1.0, reason="captcha")
    lifted = await block(bus, SUBJECTS, "a.org", hours=0.0, reason="by hand")
    found = await read_blocklist(bus, SUBJECTS)
    assert set(found.blocked(lifted.at)) == {"a_b.org"}
    assert set(found.blocked(lifted.at - 60.0)) == {"a_b.org"}, "by a clock that is behind, too"
    assert found.entries["a_b.org"].episode == blocked.episode


@pytest.mark.parametrize(
    ("text", "site"),
    [
        ("https://www.Example.org/a", "example.org"),
        ("example.org", "example.org"),
        ("127.0.0.1", "127.0.0.1"),
        ("http://[::1]:80", "::1"),
        ("http://[::1]:8000", "[::1]:8000"),
        ("http://localhost:7770/a", "localhost:7770"),
        ("shop:item", "shop"),
        ("mini_wob", "mini_wob"),
    ],
)
def test_a_person_names_a_site_as_address_host_or_suite(text: str, site: str) -> None:
    assert named_site(text) == site


@pytest.mark.parametrize(
    "text",
    ["", " ", ".", "..", "https://", "http:///path", "two words", "*", "*.example.org", "a..b", "-x", "x" * 300, "[::1"],
)
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is no site: write a host such as"):
        named_site(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(43_200.0, "12 h 0 min"), (43_141.0, "12 h 0 min"), (90.0, "2 min"), (0.5, "1 min"), (0.0, "over"), (-9.0, "over")],
)
def test_the_time_that_is_left(seconds: float, text: str) -> None:
    assert time_left(entry("a.org", 1000.0 + seconds), 1000.0) == text


def test_a_block_for_ever_ends_with_the_calendar() -> None:
    assert end_of(entry("a.org", float("inf"))).year == 9999
    assert time_left(entry("a.org", float("inf")), 0.0).endswith("min")
