"""Writes the episodes of a run or an archive in the format of another tool, with progress on the terminal."""

from pathlib import Path

from ops.archive.exports.export import Exported, export
from ops.archive.exports.played import Selection
from ops.archive.opening import open_source
from ops.archive.progress import progress_line
from ops.console.terminal import Console


async def export_episodes(
    source: Path, out: Path, *, format_name: str, selection: Selection, leave_out_unchanged: bool
) -> int:
    with progress_line() as show:
        async with open_source(source, name="export") as opened:
            done = await export(
                opened.source,
                out,
                format_name=format_name,
                selection=selection,
                context=opened.config.context_config,
                model=opened.config.model_config,
                leave_out_unchanged=leave_out_unchanged,
                progress=lambda so_far: show(_line(so_far)),
            )
    Console().print(f"{_line(done)} to {out}", soft_wrap=True, highlight=False, markup=False)
    return 0


def _line(done: Exported) -> str:
    return f"{done.num_episodes} episodes with {done.num_steps} steps"
