"""Pictures of the web pages of a run that is going on, for docs/ and for looking at every screen.

    python -m tests.support.runs.pictures --run-dir runs/quickstart --out docs     # those that the documentation shows
    python -m tests.support.runs.pictures --run-dir runs/quickstart --out screens --every-size

With `--every-size` each page is 420, 1024, 1440 and 2560 pixels wide, light and dark. The report is the one that
`millrace report` wrote last.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
from PIL import Image
from playwright.async_api import Browser, Page

from tests.support.browsers.web_pages import launched
from tests.support.runs.served_monitor import served_monitor

_DOCS_WIDTH = 1440
_WIDTHS = (420, 1024, 1440, 2560)
_DRAWN_MS = 3000
"""For what comes behind the first news of a page."""
_SHOWN = """() => [...document.images].every(
  (image) => image.complete || image.getBoundingClientRect().top > innerHeight
)"""


@dataclass(frozen=True)
class Screen:
    """A page under the name of its picture."""

    name: str
    address: str
    opens_episode: bool = False
    """On the live page."""
    height: int = 900


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run-dir", type=Path, required=True, metavar="DIR", help="of a run that has judged some episodes")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--every-size", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    anyio.run(_take, options.run_dir.resolve(), options.out, options.every_size)


async def _take(folder: Path, out: Path, every_size: bool) -> None:
    async with served_monitor(folder) as url, launched() as browser:
        for screen in [*await _screens(browser, url.rstrip("/")), *_report(folder)]:
            if not every_size:
                await _picture(browser, screen, out / f"{screen.name}.png", _DOCS_WIDTH, dark=False)
                continue
            for width in _WIDTHS:
                for dark in (False, True):
                    name = f"{screen.name}_{width}_{'dark' if dark else 'light'}.png"
                    await _picture(browser, screen, out / name, width, dark=dark)


async def _screens(browser: Browser, url: str) -> Sequence[Screen]:
    """Every page; an episode and a comparison where the run has such episodes."""
    page = await browser.new_page()
    await page.goto(f"{url}/episodes")
    await page.wait_for_selector("tr[data-episode]")

    async def listed(query: str) -> list[dict[str, Any]]:
        found: dict[str, Any] = await (await page.request.get(f"{url}/api/episodes?{query}")).json()
        return [row["summary"] for row in found["rows"]]

    screens = [
        Screen("monitor_live", url, opens_episode=True),
        Screen("viewer_list", f"{url}/episodes"),
    ]
    solved = await listed("verdict=success&sort=-steps")
    if solved:
        screens.append(Screen("viewer_episode", f"{url}/episodes/{solved[0]['episode']}#step-2"))
    for success in solved:
        failures = await listed(f"verdict=failure&task={success['task']}&split={success['split']}")
        if failures:
            pair = f"a={failures[0]['episode']}&b={success['episode']}"
            screens.append(Screen("viewer_compare", f"{url}/compare?{pair}"))
            break
    await page.close()
    return screens


def _report(folder: Path) -> Sequence[Screen]:
    page = folder / "report" / "report.html"
    return [Screen("report", page.as_uri(), height=1300)] if page.exists() else []


async def _picture(browser: Browser, screen: Screen, path: Path, width: int, *, dark: bool) -> None:
    context = await browser.new_context(
        viewport={"width": width, "height": screen.height}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
    )
    page = await context.new_page()
    await page.goto(screen.address)
    await page.wait_for_timeout(_DRAWN_MS)
    if screen.opens_episode:
        await _open_episode(page)
    await page.wait_for_function(_SHOWN)
    picture = Image.open(BytesIO(await page.screenshot()))
    picture.convert("RGB").quantize(256).save(path, optimize=True)
    await context.close()
    print(path)


async def _open_episode(page: Page) -> None:
    """One that acts now, where there is one."""
    acting = page.locator(".cells .cell.acting:not(.free)")
    if await acting.count():
        await acting.first.click()
        await page.wait_for_timeout(_DRAWN_MS)


if __name__ == "__main__":
    main()
