"""Serves the viewer of finished episodes until it is cancelled."""

from pathlib import Path

from ops.run.naming import shown_name
from ops.web.application import application
from ops.web.entrance import Entrance
from ops.web.index import EpisodeIndex
from ops.web.opening import open_store
from ops.web.token_text import token_texts
from ops.web.viewer import Viewer, following


async def serve_viewer(path: Path, entrance: Entrance) -> int:
    """Raises `ConfigurationError`: `path` holds neither a run nor an archive, or the port is taken."""
    async with open_store(path) as shown:
        rubric = shown.config.bus_config.trained_rubric
        viewer = Viewer(shown, EpisodeIndex(rubric), token_texts(shown.config.policy_config.starting_model))
        app = application([viewer.section], entrance.access, run=shown_name(shown.config), remark=shown.kind)
        async with following(viewer):
            await entrance.keep(app, viewer.end)
    return 0
