"""Runs a browser worker: a simulated browser, or Playwright's Chromium with the task suites."""

from contextlib import AbstractAsyncContextManager

from browser_workers.browser import Browser
from browser_workers.suites import Suite, open_suites
from browser_workers.worker import BrowserWorker
from ops.run.joining import RoleRun
from schemas.config import Config


async def browse(run: RoleRun) -> None:
    config = run.config
    opened, suites = _browser(config)
    async with opened as browser:
        worker = BrowserWorker(run.context, config, browser=browser, suites=suites)
        await worker.run()


def _browser(config: Config) -> tuple[AbstractAsyncContextManager[Browser], dict[str, Suite]]:
    """The browser, and the task suites whose pages it can open."""
    browser = config.browser_config
    match browser.engine:
        case "simulated":
            from ops.simulation.browser import NAME, SimulatedBrowser, SimulatedSuite

            return SimulatedBrowser(config.simulation_config), {NAME: SimulatedSuite()}
        case "playwright":
            from browser_workers.chromium.browser import PlaywrightBrowser

            return PlaywrightBrowser(browser, config.env_config, config.context_config), open_suites(browser.suites)
