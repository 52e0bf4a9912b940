"""Serves `millrace monitor`: the page with its sections, or metrics alone."""

import anyio

from ops.monitor.watch import MonitorWatch
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.naming import shown_name
from ops.web.application import application
from ops.web.entrance import Entrance
from ops.web.index import EpisodeIndex
from ops.web.live import Live
from ops.web.metrics import metrics_routes
from ops.web.serving import serve
from ops.web.store import Shown
from ops.web.stream_store import StreamStore
from ops.web.token_text import token_texts
from ops.web.viewer import Viewer, following
from schemas.config import Config
from schemas.messages import Role


async def serve_page(folder: RunFolder, config: Config, watch: MonitorWatch, entrance: Entrance) -> None:
    """Until it is cancelled. Raises `ConfigurationError`."""
    subjects, run = subjects_of(config), shown_name(config)
    # A connection of its own: a long read of finished episodes does not keep live ones waiting.
    async with join(folder, config, role=Role.MONITOR.value, name="viewer") as bus:
        shown = Shown(store=StreamStore(bus, subjects), config=config, kind="run")
        token_text = token_texts(config.policy_config.starting_model)
        viewer = Viewer(shown, EpisodeIndex(config.bus_config.trained_rubric), token_text)
        live = Live(watch, bus, subjects, config)
        app = application(
            [live.section, viewer.section], entrance.access, run=run, remark="", others=metrics_routes(watch, run)
        )

        def end() -> None:
            live.end()
            viewer.end()

        async with following(viewer):
            await entrance.keep(app, end)


async def serve_metrics(config: Config, watch: MonitorWatch, entrance: Entrance, listens: anyio.Event) -> None:
    """Until it is cancelled. Raises `ConfigurationError`."""
    run = shown_name(config)
    app = application([], entrance.access, run=run, remark="", others=metrics_routes(watch, run))
    await serve(app, entrance.listening, ready=lambda _: listens.set(), ending=lambda: None)
