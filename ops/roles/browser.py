"""Runs a browser worker: a simulated browser, or Playwright's Chromium with the task suites, had from the provider."""

from contextlib import AbstractAsyncContextManager

from browser_workers.browser import Browser
from browser_workers.providers.choosing import provider_of
from browser_workers.providers.leases import Leases, Owner
from browser_workers.suites import Suite, open_suites
from browser_workers.worker import BrowserWorker
from ops.processes.temporary_files import own_temporary_files
from ops.run.joining import RoleRun, identity
from schemas.messages import Role


async def browse(run: RoleRun) -> None:
    config = run.config
    opened, suites = _browser(run)
    # A browser that is killed with its worker leaves profile, downloads and sockets behind.
    with own_temporary_files(Role.BROWSER.value):
        async with opened as browser:
            worker = BrowserWorker(run.context, config, browser=browser, suites=suites)
            await worker.run()


def _browser(run: RoleRun) -> tuple[AbstractAsyncContextManager[Browser], dict[str, Suite]]:
    """The browser, and the task suites whose pages it can open."""
    config, browser = run.config, run.config.browser_config
    match browser.engine:
        case "simulated":
            from ops.simulation.browser import NAME, SimulatedBrowser, SimulatedSuite

            suites: dict[str, Suite] = {NAME: SimulatedSuite()}
            if browser.provided_by == "browserbase":
                from ops.simulation.provided_browser import ProvidedBrowser

                return ProvidedBrowser(config.simulation_config, _leases(run)), suites
            return SimulatedBrowser(config.simulation_config), suites
        case "playwright":
            from browser_workers.chromium.browser import PlaywrightBrowser

            opened = PlaywrightBrowser(browser, config.env_config, config.context_config, leases=_leases(run))
            return opened, open_suites(browser.suites)


def _leases(run: RoleRun) -> Leases:
    """An episode that waits for a session until its own time is over would not be begun again."""
    browser, task_s = run.config.browser_config, run.config.env_config.task_timeout_minutes * 60.0
    return Leases(
        provider_of(browser),
        Owner(identity(run.folder, run.config.bus_config, Role.BROWSER.value), run.context.worker),
        wait_s=min(browser.provider_wait_s, task_s / 2),
        figures=run.context.status.metrics,
    )
