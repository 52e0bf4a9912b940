"""Pixels and addresses, screenshots, and what websites stand for."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from browser_workers.actions import pixel, pixels, scroll_delta, wait_s, web_address
from browser_workers.chromium.process.executable import find_chromium
from browser_workers.observation.screenshots import is_blank
from browser_workers.site import SiteRequest
from browser_workers.suites import UnknownWebsite, resolve
from browser_workers.suites.demo import DemoSuite
from schemas.errors import ConfigurationError
from schemas.messages import Action, ActionKind, Screenshot


@pytest.mark.parametrize(("n", "expected"), [(0, 0), (500, 640), (999.9, 1279), (1000, 1279), (-5, 0), (5000, 1279)])
def test_pixel(n: float, expected: int) -> None:
    assert pixel(1280, n) == expected


@given(st.integers(1, 4096), st.floats(-1e9, 1e9))
def test_a_pixel_is_always_in_the_viewport(size: int, n: float) -> None:
    assert 0 <= pixel(size, n) < size


def test_points_are_in_the_screenshot() -> None:
    assert pixels((500, 1000), (160, 210)) == (80, 209)
    for outside in ((-1.0, 5.0), (5.0, 1000.5), (float("nan"), 5.0), (5.0, float("inf"))):
        assert "outside the screenshot" in str(pixels(outside, (160, 210)))


def test_scrolls_are_pages() -> None:
    deltas = [scroll_delta(direction, (160, 210)) for direction in ("up", "down", "left", "right")]
    assert deltas == [(0, -210), (0, 210), (-160, 0), (160, 0)]
    assert scroll_delta("sideways", (160, 210)) == "'sideways' is no direction: write up, down, left or right"


def test_waits_are_bounded() -> None:
    assert [wait_s(Action(kind=ActionKind.WAIT, seconds=s)) for s in (-1.0, 2.0, 9e9)] == [0.0, 2.0, 30.0]


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("example.org", "https://example.org"),
        ("example.org:8080/a", "https://example.org:8080/a"),
        ("localhost:8080", "https://localhost:8080"),
        (" http://example.org/?q=a:b ", "http://example.org/?q=a:b"),
        ("example.org/?u=x:y", "https://example.org/?u=x:y"),
        ("file:///etc/passwd", ""),
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("chrome://settings", ""),
        ("about:blank", ""),
        ("http://", ""),
        ("http://[", ""),
        ("two words", ""),
        ("", ""),
    ],
)
def test_web_address(text: str, url: str) -> None:
    assert web_address(text) == url


@given(st.text())
def test_web_address_never_fails_and_never_leaves_the_web(text: str) -> None:
    assert re.match(r"\Z|https?://[^/]", web_address(text))


def screenshot(image: Image.Image, kind: str) -> Screenshot:
    data = io.BytesIO()
    image.save(data, kind)
    return Screenshot(data=data.getvalue(), media_type=f"image/{kind}", width=image.width, height=image.height)


@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_is_blank(kind: str) -> None:
    white = Image.new("RGB", (160, 208), "white")
    assert is_blank(screenshot(white, kind))
    white.paste((40, 40, 40), (16, 16, 64, 64))
    assert not is_blank(screenshot(white, kind))
    assert not is_blank(screenshot(Image.new("RGB", (1280, 768), (200, 220, 240)), kind))


def test_websites_are_pages_of_a_suite_or_addresses() -> None:
    suites = {"demo": DemoSuite()}
    page = resolve("demo:click_button?seed=17", suites)
    assert page.url == "http://demo.millrace.test/click_button?seed=17"
    assert page.keeps_no_state
    assert page.site is not None
    assert b"<html" in page.site.respond(SiteRequest("/click_button")).body
    web = resolve("www.example.org/shop", suites)
    assert (web.url, web.site, web.keeps_no_state) == ("https://www.example.org/shop", None, False)


def test_unknown_websites_say_what_to_write() -> None:
    suites = {"demo": DemoSuite()}
    with pytest.raises(UnknownWebsite, match="click_button, find_button"):
        resolve("demo:clik_button", suites)
    with pytest.raises(UnknownWebsite, match=r"demo:"):
        resolve("mailto:someone", suites)


def test_no_chromium_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PLAYWRIGHT_BROWSERS_PATH", raising=False)
    with pytest.raises(ConfigurationError, match="apt-get install chromium-headless-shell"):
        find_chromium()
    with pytest.raises(ConfigurationError, match=r"browser_config\.executable is '/no/such'"):
        find_chromium("/no/such")
