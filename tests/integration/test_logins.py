"""Episodes that begin signed in: what a real Chromium sends and holds, and files that cannot be used."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from browser_workers.browser import Opening
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.logins import Logins
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig
from schemas.errors import ConfigurationError
from tests.support.browsers.local_site import LocalSite, Reply, local_site
from tests.support.browsers.staged_network import StagedNetwork

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
PUBLIC = "93.184.215.14"
NAMES = dict.fromkeys(("shop.example", "www.shop.example", "other.example"), ((PUBLIC,),))
HELD = "() => localStorage.getItem('basket')"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def stored(session: str, basket: str = "full") -> Mapping[str, object]:
    cookie = {"name": "session", "value": session, "domain": "shop.example", "path": "/", "expires": -1}
    kept = {"origin": "http://shop.example", "localStorage": [{"name": "basket", "value": basket}]}
    return {"cookies": [{**cookie, "httpOnly": True, "secure": False, "sameSite": "Lax"}], "origins": [kept]}


def login(folder: Path, content: object, site: str = "shop.example") -> Path:
    path = folder / f"{site}.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(0o600)
    return path


async def visited(browser: PlaywrightBrowser, site: LocalSite, host: str) -> tuple[str, str | None]:
    """The cookies that a new episode sends, and what its page finds stored."""
    async with browser.session(Opening(url=f"http://{host}/", quiet_s=0.0)) as session:
        assert not (await session.open()).navigation_error
        held = await session.context.pages[0].evaluate(HELD)
    return [asked for asked in site.asked if asked.path == "/"][-1].headers.get("cookie", ""), held


async def test_an_episode_on_the_site_begins_signed_in_and_no_other_does(tmp_path: Path) -> None:
    login(tmp_path, stored("first"))
    config = BrowserConfig(viewport_width=400, viewport_height=300, logins_folder=str(tmp_path))
    async with local_site({"/": Reply(b"<!doctype html><title>shop</title>")}) as site:
        network = StagedNetwork(NAMES, served={PUBLIC: site.port}).network
        async with PlaywrightBrowser(config, EnvConfig(), network=network) as browser:
            assert await visited(browser, site, "shop.example") == ("session=first", "full")
            assert await visited(browser, site, "other.example") == ("", None)
            login(tmp_path, stored("renewed", "empty"))
            assert await visited(browser, site, "shop.example") == ("session=renewed", "empty")


async def test_the_nearest_domain_with_a_file_counts(tmp_path: Path) -> None:
    login(tmp_path, stored("above"))
    login(tmp_path, stored("own"), "mail.shop.example")
    logins = Logins(str(tmp_path))

    async def session(url: str) -> str | None:
        found = await logins.of(url)
        return found["cookies"][0]["value"] if found else None

    assert await session("https://www.shop.example/basket") == "above"
    assert await session("https://a.mail.shop.example:8443/") == "own"
    assert await session("https://myshop.example/") is None
    assert await session("http://localhost/") is None
    (tmp_path / "below").mkdir()
    below = Logins(str(tmp_path / "below"))
    for website in ("../shop.example", "x/../../shop.example", "a." * 500 + "example", "nul\0.example"):
        assert await below.of(website) is None
    assert await Logins("").of("https://shop.example/") is None


async def test_a_file_that_is_being_written_leaves_the_login_as_it_was(tmp_path: Path) -> None:
    login(tmp_path, stored("first"))
    logins = Logins(str(tmp_path))
    login(tmp_path, '{"cookies": [')
    assert await logins.of("https://shop.example/") == stored("first")


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        ("[]", 0o600, "is no stored login .*playwright open --save-storage=shop.example.json https://shop.example"),
        ('{"cookies": 3}', 0o600, "is no stored login"),
        ('{"cookies": []}', 0o644, "can be read by others: chmod 600"),
    ],
)
def test_what_cannot_be_used_is_said_at_the_start(content: str, mode: int, said: str, tmp_path: Path) -> None:
    login(tmp_path, content).chmod(mode)
    with pytest.raises(ConfigurationError, match=said):
        PlaywrightBrowser(BrowserConfig(logins_folder=str(tmp_path)), EnvConfig())


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"logins_folder: .* is no folder"):
        Logins(str(tmp_path / "missing"))
