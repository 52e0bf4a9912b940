"""Puts faults into a run that goes on, then the promises that hold at any time."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from ops.audit.acknowledgements import AcknowledgementWatch
from ops.audit.audit import audit
from ops.audit.display import audit_table
from ops.console.terminal import Console
from ops.drills.bounds import kinds_counted
from ops.drills.faults import SERVER_FAULTS, FaultKind, faults
from ops.drills.injection import Injector
from ops.drills.own_run import KINDS, OwnRun, durations
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.logs import quiet_logs
from schemas.errors import BusError, ConfigurationError

_LOOK_S = 2.0


async def main(run_dir: Path, *, kinds: Sequence[FaultKind], seed: int, interval_s: float, duration_s: float) -> int:
    """Returns 0 when every promise that holds at any time was kept, 1 when one was broken."""
    # That the server is away, again and again, is no news here.
    with quiet_logs(logging.ERROR):
        return await _disturb(run_dir, kinds=kinds, seed=seed, interval_s=interval_s, duration_s=duration_s)


async def _disturb(run_dir: Path, *, kinds: Sequence[FaultKind], seed: int, interval_s: float, duration_s: float) -> int:
    folder = RunFolder(run_dir)
    config = folder.load()
    arena, console = OwnRun(folder), Console()
    victims = _victims(arena, kinds)
    names = sorted({name for some in victims.values() for name in some})
    console.print(f"faults for {duration_s:g} s, one in {interval_s:g} s, into {', '.join(names)}", markup=False)
    injector = Injector(arena, folder.path, lambda fault: console.print(f"{fault.kind} {fault.victim}", markup=False))
    planned = faults(seed=seed, mean_interval_s=interval_s, victims=victims, durations=durations(config.bus_config))
    async with join(folder, config, role="monitor", name="chaos") as bus:
        watch = AcknowledgementWatch(bus, subjects_of(config), config.bus_config)
        with anyio.move_on_after(duration_s):
            async with anyio.create_task_group() as group:
                group.start_soon(injector.run, planned)
                group.start_soon(_look, watch)
        found = await audit(bus, config)
    console.print(audit_table(found))
    counted = ", ".join(f"{kind} {count}" for kind, count in kinds_counted(injector.log).items())
    console.print(
        f"faults: {counted or 'none'}; {injector.num_missed} found nobody; {watch.num_looks} looks at the queues", markup=False
    )
    for violation in sorted(watch.violations):
        console.print(violation, style="bold red", markup=False)
    if watch.num_looks == 0:
        console.print("[bold red]the queues could never be compared with the outputs: give it a longer --duration[/]")
    kept = found.findings.holds_so_far and not watch.violations and watch.num_looks > 0
    console.print("[bold green]every promise was kept so far[/]" if kept else "[bold red]a promise was broken[/]")
    return 0 if kept else 1


def _victims(arena: OwnRun, kinds: Sequence[FaultKind]) -> dict[FaultKind, list[str]]:
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ConfigurationError(
            f"{unknown[0]} needs a drill of its own (--out): in a run that goes on, write some of {', '.join(KINDS)}"
        )
    workers = [found.name for found in arena.workers() if not found.name.startswith("server")]
    servers = [found.name for found in arena.servers()]
    if not workers:
        raise ConfigurationError("no role of this run is on this machine: give the --run-dir with which they were started")
    return {kind: servers if kind in SERVER_FAULTS else workers for kind in kinds or KINDS}


async def _look(watch: AcknowledgementWatch) -> None:
    while True:
        with suppress(BusError):  # the server is away: nothing can be concluded
            await watch.look()
        await anyio.sleep(_LOOK_S)
