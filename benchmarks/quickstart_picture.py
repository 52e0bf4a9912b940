"""The pictures of the quickstart in the README: `python -m benchmarks.quickstart_picture RUN_DIR` reads what a finished
quickstart left in its streams, draws its screen as it was at the end of learning to docs/quickstart.svg, and puts the solved
episode that it drew itself beside it.
"""

import argparse
import io
import shutil
from dataclasses import replace
from pathlib import Path

import anyio
import msgspec
from rich.console import Console

from bus.background import background
from ops.monitor.dashboard import render
from ops.monitor.run_watch import RunState, RunWatch
from ops.monitor.view import Metrics, RoleRow, View
from ops.quickstart.display import PHASES
from ops.quickstart.quickstart import Quickstart
from ops.quickstart.results import Lesson
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.served import served
from schemas.ids import PolicyVersion
from schemas.messages import Role

_READ_S = 60.0
_ROLES = (Role.SERVER, Role.FEEDER, Role.BROWSER, Role.POLICY, Role.JUDGE, Role.TRAINER)


async def picture(folder: RunFolder, width: int, height: int) -> str:
    """SVG."""
    config, result = folder.load(), msgspec.json.decode(folder.result.read_bytes())
    lesson = Lesson(**{name: result[name] for name in ("seed", "family", "observe", "objective", "mode")})
    display = Quickstart(folder, config, lesson).display
    subjects, last = subjects_of(config), PolicyVersion(result["num_versions"])
    async with served(folder, config), join(folder, config, role=Role.MONITOR.value, name="picture") as bus:
        display.watch = watch = RunWatch(bus, subjects, config.bus_config)
        async with background(watch.run):
            with anyio.fail_after(_READ_S):
                await watch.wait_until(lambda state: _is_complete(state, last))
        display.phase = PHASES.index("learning")
        shown = _as_it_ended(display.view(), result["setup_seconds"] + result["loop_seconds"])
    console = Console(width=width, height=height, record=True, file=io.StringIO())
    console.print(render(shown, width, height))
    return console.export_svg(title="millrace quickstart")


def _is_complete(state: RunState, last: PolicyVersion) -> bool:
    return len(state.versions) == last and state.num_evaluated(last) >= state.num_evaluated(PolicyVersion(0)) > 0


def _as_it_ended(view: View, seconds: float) -> View:
    """What streams do not keep: how long it took, and whose processes there were."""
    roles = tuple(RoleRow(worker=f"{role.value}-1", state="running") for role in _ROLES)
    metrics = replace(view.metrics or Metrics(), episodes_per_s=None, queue_depth=None)  # of the reading
    return replace(view, elapsed_s=seconds, roles=roles, metrics=metrics)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/quickstart.svg"))
    parser.add_argument("--width", type=int, default=100, help="columns of the terminal")
    parser.add_argument("--height", type=int, default=34, help="its lines")
    options = parser.parse_args()
    folder = RunFolder(options.run_dir.resolve())
    shutil.copyfile(folder.path / "episode.png", options.out.with_name(f"{options.out.stem}_episode.png"))
    options.out.write_text(anyio.run(picture, folder, options.width, options.height), encoding="utf-8")


if __name__ == "__main__":
    main()
