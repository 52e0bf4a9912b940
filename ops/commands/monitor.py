"""Shows a run as it stands, in the terminal, as a page, as JSON, for Prometheus; with the monitor's key."""

import argparse
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from bus.background import background
from bus.server import is_served
from ops.commands.arguments import RUN_DIR, add_joining, port
from ops.commands.execution import interruptible
from ops.commands.page_arguments import add_entrance, add_page, entrance_of
from ops.config.loading import load_config
from ops.console.json_lines import json_lines
from ops.console.terminal import Console
from ops.monitor.screen.frame import Shown, frame
from ops.monitor.screen.terminal import Terminal
from ops.monitor.snapshot import Updates
from ops.monitor.watch import MonitorWatch, monitoring
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.served import served
from schemas.config import Config
from schemas.errors import BusUnavailable, ConfigurationError
from schemas.messages import Role

if TYPE_CHECKING:
    from ops.web.entrance import Entrance

EXAMPLE = """\
millrace monitor --run-dir runs/mine
millrace monitor --run-dir runs/mine --web --open
millrace monitor --run-dir runs/mine --once --json | jq .sections.alerts
millrace monitor --run-dir runs/mine --prometheus 9464"""
_STALLED_S = 60.0
"""Without another record of those that a monitor reads first."""
_JSON_EVERY_S = 1.0
_LEAST_HEIGHT = 24


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_joining(parser)
    parser.add_argument("--once", action="store_true", help="print how it stands now, and end")
    parser.add_argument("--json", action="store_true", help="JSON lines: everything first, then what changed")
    parser.add_argument(
        "--prometheus", type=port, metavar="PORT", help="serve metrics for Prometheus at /metrics on this port as well"
    )
    page = parser.add_argument_group("as a page in a browser, in place of the terminal")
    page.add_argument("--web", action="store_true", help="serve the page, finished episodes and /metrics")
    add_page(page)
    add_entrance(parser)


@interruptible
async def run(options: argparse.Namespace) -> int:
    if options.web and (options.once or options.json or options.prometheus):
        raise ConfigurationError(
            "--web is a page in place of --once, --json and --prometheus, and serves /metrics itself: leave these out"
        )
    if not options.web and (options.port or options.open):
        raise ConfigurationError("--port and --open are of the page: add --web; for metrics alone write --prometheus PORT")
    port = options.port if options.web else options.prometheus
    return await _show(options, entrance_of(options, port) if options.web or options.prometheus else None)


async def _show(options: argparse.Namespace, entrance: "Entrance | None") -> int:
    """`entrance`: of the page, or of metrics alone."""
    folder, config = _run_of(options)
    async with AsyncExitStack() as stack:
        if options.once:
            # A run that has ended may be looked at too.
            await stack.enter_async_context(served(folder, config))
        elif not config.bus_config.url and not is_served(folder.server):
            raise ConfigurationError(
                f"no server runs for {folder.path}: start the run, or see how it stood when it ended: "
                f"millrace monitor --once --run-dir {folder.path}"
            )
        watch = await stack.enter_async_context(_watching(folder, config))
        if options.web and entrance is not None:
            from ops.web.live_site import serve_page

            await serve_page(folder, config, watch, entrance)
            return 0
        if entrance is not None:
            await stack.enter_async_context(_metrics(entrance, watch, config))
        if options.json:
            await _print_json(watch, config, once=options.once)
        elif options.once:
            await _print_once(watch, config)
        else:
            await Terminal(_console(entrance), lambda: _shown(watch, config)).run()
    return 0


def _run_of(options: argparse.Namespace) -> tuple[RunFolder, Config]:
    """The run's folder, which need not be there for one on a server elsewhere. Nothing is created."""
    if options.config is None:
        folder = RunFolder((options.run_dir or RUN_DIR).resolve())
        config = folder.load(options.overrides)
    else:
        config = load_config(options.config, options.overrides)
        folder = RunFolder((options.run_dir or Path(config.save_path)).resolve())
    return folder, replace(config, save_path=str(folder.path))


@asynccontextmanager
async def _watching(folder: RunFolder, config: Config) -> AsyncIterator[MonitorWatch]:
    # Where the server's data lie, when they lie on this machine.
    disk = folder.server if not config.bus_config.url and folder.server.is_dir() else None
    async with (
        join(folder, config, role=Role.MONITOR.value, name="monitor") as bus,
        monitoring(bus, subjects_of(config), config, disk=disk) as watch,
    ):
        yield watch


@asynccontextmanager
async def _metrics(entrance: "Entrance", watch: MonitorWatch, config: Config) -> AsyncIterator[None]:
    from schemas.extras import require_extra

    require_extra("prometheus_client", "monitor")
    from ops.web.live_site import serve_metrics

    listens = anyio.Event()
    async with background(lambda: serve_metrics(config, watch, entrance, listens)):
        await listens.wait()
        yield


async def _complete(watch: MonitorWatch) -> None:
    """Raises `BusUnavailable` when nothing more of the streams can be read; says what is missing."""
    num_read = -1
    while num_read < watch.num_read:
        num_read = watch.num_read
        with anyio.move_on_after(_STALLED_S):
            return await watch.wait_complete()
    raise BusUnavailable(f"{', '.join(watch.missing)}: nothing could be read for {_STALLED_S:.0f} s")


async def _print_json(watch: MonitorWatch, config: Config, *, once: bool) -> None:
    """Lines of `snapshot.Updates`: everything first, then differences."""
    updates = Updates()
    async with json_lines() as lines:
        await _complete(watch)
        while True:
            alerts = watch.conditions_now() if once else watch.alerts
            await lines.write(updates.next(watch.state, alerts, config, watch.now()))
            if once:
                return
            await anyio.sleep(_JSON_EVERY_S)


async def _print_once(watch: MonitorWatch, config: Config) -> None:
    await _complete(watch)
    console = Console()
    shown = Shown(state=watch.state, alerts=watch.conditions_now(), config=config, now=watch.now())
    console.print(frame(shown, console.width, max(_LEAST_HEIGHT, console.height - 1)))


def _console(entrance: "Entrance | None") -> Console:
    console = Console()
    if entrance is not None and not console.is_terminal:
        url = f"{entrance.listening.url(entrance.listening.port)}metrics"
        console.print(f"metrics for Prometheus: {url}", soft_wrap=True, highlight=False, markup=False)
    return console


def _shown(watch: MonitorWatch, config: Config) -> Shown:
    return Shown(state=watch.state, alerts=watch.alerts, config=config, now=watch.now(), missing=watch.missing)
