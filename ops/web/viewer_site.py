"""Serves the viewer of finished episodes until it is cancelled."""

from dataclasses import replace
from pathlib import Path

from starlette.types import ASGIApp

from ops.labels.label_file import LabelFile
from ops.run.naming import shown_name
from ops.web.access import Access
from ops.web.application import application
from ops.web.entrance import Entrance
from ops.web.index import EpisodeIndex
from ops.web.labelling import WRITTEN, Labelling
from ops.web.opening import open_store
from ops.web.token_text import token_texts
from ops.web.viewer import Viewer, following


async def serve_viewer(path: Path, entrance: Entrance, labels: Path | None = None) -> int:
    """
    Args:
        labels: a file of labels, which its reader fills in.

    Raises:
        ConfigurationError: `path` holds neither a run nor an archive, the labels cannot be read, or the port is taken.
    """
    file = None if labels is None else LabelFile(labels)
    async with open_store(path) as shown:
        rubric = shown.config.bus_config.trained_rubric
        viewer = Viewer(shown, EpisodeIndex(rubric), token_texts(shown.config.policy_config.starting_model))
        app = viewer_application(viewer, entrance.access, run=shown_name(shown.config), labels=file)
        async with following(viewer):
            await entrance.keep(app, viewer.end)
    return 0


def viewer_application(viewer: Viewer, access: Access, *, run: str, labels: LabelFile | None = None) -> ASGIApp:
    """With `labels`, the section in which they are filled in comes first."""
    sections = [viewer.section]
    if labels is not None:
        sections, access = [Labelling(labels).section, viewer.section], replace(access, written=WRITTEN)
    return application(sections, access, run=run, remark=viewer.shown.kind)
