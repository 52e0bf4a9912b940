"""Who provides browsers: what is missing, what contradicts itself, and what a browser elsewhere cannot be asked for."""

import pytest

from browser_workers.browser import Opening
from browser_workers.providers.addresses import Addresses
from browser_workers.providers.choosing import provider_of
from browser_workers.providers.local import Local
from browser_workers.providers.provider import Label, Place
from browser_workers.providers.reachable import require_reachable
from browser_workers.site import Documents
from browser_workers.suites import UnknownWebsite
from schemas.browser_config import BrowserConfig
from schemas.config import Config
from schemas.env_config import EnvConfig
from schemas.errors import ConfigurationError

pytestmark = pytest.mark.anyio
LABEL = Label("run", "worker", "episode", "token", 0.0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"provider": "cdp"}, "no browser is named: write its DevTools address"),
        ({"provider": "local", "cdp_url": "http://127.0.0.1:1"}, "name other browsers: leave them out, or write cdp"),
        ({"provider": "browserbase", "cdp_urls": ("http://127.0.0.1:1",)}, "provider is browserbase and .* leave them out"),
        ({"cdp_url": "http://127.0.0.1:1", "cdp_urls": ("http://127.0.0.1:2",)}, "write all of them into cdp_urls"),
        ({"cdp_urls": ("http://127.0.0.1:1", "http://127.0.0.1:1")}, "has an address twice"),
        ({"cdp_urls": ("http://127.0.0.1:1", "http://far.example")}, r"cdp_urls leads to far\.example unencrypted"),
        (
            {"cdp_urls": ("wss://far.example",), "proxies": ("http://h:1",)},
            "no effect on the browser at browser_config.cdp_urls",
        ),
        ({"provider": "browserbase", "proxies": ("http://h:1",)}, "do not pass the gate: .*provider_proxies=true"),
        ({"provider": "browserbase", "private_hosts": ("10.0.0.1",)}, "reaches nothing of your network"),
        ({"provider": "browserbase", "locale": "en-GB"}, "the provider's browser says what it is"),
        ({"provider": "browserbase", "provider_lease_s": 59.0}, "write 60 to 21600"),
        ({"provider": "browserbase", "provider_wait_s": -1.0}, "write 0 or more"),
        ({"provider": "browserbase", "provider_key_env_var": ""}, "as in BROWSERBASE_API_KEY"),
        ({"provider": "browserbase", "provider_url": "http://api.example"}, "with https://, since the key goes there"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_write(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        BrowserConfig(**changes)  # type: ignore[arg-type]


def test_without_a_key_it_is_said_where_it_belongs() -> None:
    with pytest.raises(ConfigurationError, match="there is no key: set BROWSERBASE_API_KEY in the environment"):
        provider_of(BrowserConfig(provider="browserbase"), {})
    mine = BrowserConfig(provider="browserbase", provider_key_env_var="MY_KEY")
    with pytest.raises(ConfigurationError, match="set MY_KEY"):
        provider_of(mine, {"BROWSERBASE_API_KEY": "k"})


def test_an_episode_has_to_fit_into_its_session() -> None:
    browsers = BrowserConfig(provider="browserbase", provider_lease_s=600.0)
    Config(browser_config=browsers, env_config=EnvConfig(task_timeout_minutes=8.0))
    with pytest.raises(ConfigurationError, match=r"a lease of 675 s"):
        Config(browser_config=browsers, env_config=EnvConfig(task_timeout_minutes=9.0))


async def test_by_default_nothing_is_asked_and_every_episode_has_the_same_place() -> None:
    provider = provider_of(BrowserConfig(), {})
    assert isinstance(provider, Local)
    assert provider.lease_s == 0
    assert (await provider.create(LABEL)).place == (await provider.create(LABEL)).place == Place()


async def test_of_several_addresses_the_one_with_fewest_episodes_is_next() -> None:
    urls = ("http://127.0.0.1:1", "http://127.0.0.1:2")
    provider = provider_of(BrowserConfig(cdp_urls=urls), {"MILLRACE_CDP_TOKEN": "t"})
    assert isinstance(provider, Addresses)
    first, second, third = [await provider.create(LABEL) for _ in range(3)]
    assert [each.place for each in (first, second, third)] == [Place(urls[0], "t"), Place(urls[1], "t"), Place(urls[0], "t")]
    await provider.end(first.id)
    await provider.end(third.id)
    assert (await provider.create(LABEL)).place.url == urls[0]


async def test_an_address_whose_browser_was_lost_is_left_alone_for_a_while_unless_all_were() -> None:
    now = 0.0
    provider = Addresses(["http://a", "http://b"], clock=lambda: now)

    async def lose(url: str) -> None:
        session = await provider.create(LABEL)
        assert session.place.url == url
        await provider.end(session.id, was_lost=True)

    async def next_url() -> str:
        session = await provider.create(LABEL)
        await provider.end(session.id)
        return session.place.url

    await lose("http://a")
    assert [await next_url() for _ in range(3)] == ["http://b"] * 3
    now = 10.0
    await lose("http://b")
    assert await next_url() == "http://a", "it is ready first"
    now = 45.0
    assert {(await provider.create(LABEL)).place.url for _ in range(2)} == {"http://a", "http://b"}


def test_what_is_secret_in_an_address_is_shown_nowhere() -> None:
    place = Place("wss://me:secret@a.example/x?apiKey=secret", token="secret")
    assert "secret" not in f"{place!r} {place.shown}"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/", "http://localhost/", "http://10.0.0.5/", "http://shop.corp/", "http://nas/"]
)
def test_a_private_website_is_none_for_a_browser_of_a_provider(url: str) -> None:
    config = BrowserConfig(provider="browserbase")
    with pytest.raises(UnknownWebsite, match="play such tasks with provider=local"):
        require_reachable(Opening(url=url), config)
    require_reachable(Opening(url=url), BrowserConfig())
    require_reachable(Opening(url=url, site=Documents(url.rstrip("/"), {})), config)
    require_reachable(Opening(url="https://example.org/"), config)
