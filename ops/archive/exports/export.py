"""Exports a source in one format: the folder is there whole, under its name, or not at all."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from ops.archive.episodes import EpisodeSource
from ops.archive.exports.played import Selection
from ops.archive.formats import Format, FormatOptions
from ops.console.output_folder import make_output
from schemas.context_config import ContextConfig
from schemas.errors import ConfigurationError
from schemas.extensions import EXPORTERS
from schemas.model_config import ModelConfig


@dataclass
class Exported:
    num_episodes: int = 0
    num_steps: int = 0


async def export(
    source: EpisodeSource,
    out: Path,
    *,
    format_name: str,
    selection: Selection,
    context: ContextConfig,
    model: ModelConfig,
    leave_out_unchanged: bool = False,
    progress: Callable[[Exported], None] = lambda _: None,
) -> Exported:
    """Raises `ConfigurationError` when there is no such format, or `out` is there already and not an empty folder."""
    part = EXPORTERS.find(format_name)
    partial = _begin(out)
    done = Exported()
    options = FormatOptions(folder=partial, context=context, model=model, leave_out_unchanged=leave_out_unchanged)
    try:
        writer: Format = part.made(options)
        try:
            async for played in selection.of(source):
                done.num_steps += await anyio.to_thread.run_sync(writer.add, played)
                done.num_episodes += 1
                progress(done)
        finally:
            writer.close()
        partial.replace(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return done


def _begin(out: Path) -> Path:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigurationError(f"{out} is there already: choose a folder that does not exist, or remove it")
    partial = out.with_name(f"{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    return make_output(partial)
