"""`millrace chaos --days N`: a run of N days with a failover a day, each day so many seconds, proved while it passes.

Every day the feeder that leads is killed, and another role's worker in turn. When the days are over admission stops,
everything that was admitted has to end, and no takeover may have cost more than those of the first days.
"""

import json
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import cycle

import anyio
from rich.table import Table

from ops.console.output_folder import make_output
from ops.console.terminal import Console
from ops.drills.failed import DrillFailed
from ops.drills.scaled_run import ScaledRun, ScaledSettings, names_of, scaled_run
from ops.monitor.dashboard import dashboard
from ops.monitor.view import Progress, View
from ops.run.logs import role_logs
from schemas.messages import Role

_NUM_FIRST_DAYS = 7
_SHOWN = 10
_PATIENCE_S = 120.0
_OTHERS = (Role.BROWSER, Role.POLICY, Role.JUDGE, Role.TRAINER)


@dataclass(frozen=True, kw_only=True)
class Day:
    day: int
    killed: str
    """Beside the feeder that led."""
    admitted: int
    """Episodes so far, and so on."""
    judged: int
    version: int
    aged_out: int
    """Judgements that the server has removed."""
    takeover_records: int
    """That the feeder read which took over."""
    takeover_s: float


@dataclass(frozen=True, kw_only=True)
class DaysReport:
    command: str
    seed: int
    day_s: float
    days: Sequence[Day]
    faults: Sequence[str]
    """Promises that were broken."""

    @property
    def grown(self) -> str:
        """Whether takeovers have become dearer: what a day brings is read at most, never what all days brought."""
        first = [day.takeover_records for day in self.days[:_NUM_FIRST_DAYS]]
        later = [day.takeover_records for day in self.days[_NUM_FIRST_DAYS:]]
        if not later or max(later) <= 2 * max(first) + 50:
            return ""
        return f"a takeover read {max(later)} records; in the first days at most {max(first)}"

    @property
    def stalled(self) -> list[str]:
        """Days on which no version came."""
        return [
            f"no version came on day {after.day}"
            for before, after in zip(self.days, self.days[1:], strict=False)
            if after.version <= before.version
        ]

    @property
    def holds(self) -> bool:
        return bool(self.days) and not self.faults and not self.grown and not self.stalled

    def as_json(self) -> dict[str, object]:
        return {
            "command": self.command,
            "seed": self.seed,
            "day_s": self.day_s,
            "holds": self.holds,
            "broken": [*self.faults, *self.stalled, *([self.grown] if self.grown else [])],
            "days": [asdict(day) for day in self.days],
        }

    def table(self) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for name in Day.__dataclass_fields__:
            table.add_column(name.replace("_", " "), justify="left" if name == "killed" else "right")
        for day in self.days:
            table.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in asdict(day).values()))
        return table


async def days_main(settings: ScaledSettings, *, num_days: int, command: str) -> int:
    """Returns 0 when every promise was kept, 1 when one was broken."""
    console = Console()
    logs = make_output(settings.folder.resolve() / "logs")
    with (
        (logs / "drill.out").open("a") as output,
        role_logs(logs / "drill.log", run="days", role="drill", worker="", stream=output),
    ):
        began, days = anyio.current_time(), list[Day]()
        async with dashboard(lambda: _view(days, num_days, anyio.current_time() - began), console):
            report = await play_days(settings, num_days=num_days, command=command, on_day=days.append)
    file = settings.folder / "report.json"
    file.write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")
    console.print(report.table())
    for broken in list(filter(None, (*report.faults, *report.stalled, report.grown)))[:_SHOWN]:
        console.print(broken, markup=False)
    console.print("[bold green]every promise was kept[/]" if report.holds else "[bold red]a promise was broken[/]")
    console.print(f"metrics   {file}", soft_wrap=True, highlight=False, markup=False)
    return 0 if report.holds else 1


def _view(days: Sequence[Day], num_days: int, elapsed_s: float) -> View:
    note = f"{days[-1].judged} episodes judged" if days else ""
    played = Progress(label="days", done=len(days), total=num_days, note=note)
    return View(title="Millrace chaos", elapsed_s=elapsed_s, progress=(played,))


async def play_days(
    settings: ScaledSettings, *, num_days: int, command: str = "", on_day: Callable[[Day], None] = lambda _: None
) -> DaysReport:
    """Raises `ConfigurationError` and `DrillFailed` as `scaled_run`."""
    days: list[Day] = []
    others = cycle(_OTHERS)
    async with scaled_run(settings) as run:
        await _require(run, lambda: len(run.passing.versions) > 1 and run.leader() is not None, "nothing was trained")
        for number in range(1, num_days + 1):
            days.append(await _day(run, number, next(others), settings.day_s))
            on_day(days[-1])
        await run.settle()
        faults = run.passing.proof()
    return DaysReport(command=command, seed=settings.seed, day_s=settings.day_s, days=days, faults=faults)


async def _require(run: ScaledRun, holds: Callable[[], bool], otherwise: str) -> None:
    """Raises `DrillFailed`, also where a role cannot run."""
    if not await run.until(holds, limit_s=_PATIENCE_S):
        raise DrillFailed(f"{otherwise} within {_PATIENCE_S:g} s")


async def _day(run: ScaledRun, number: int, other: Role, day_s: float) -> Day:
    """Kills, and waits until somebody else leads, training has gone on, and the day is over."""
    began, version = anyio.current_time(), len(run.passing.versions)
    led, victim = run.leader(), names_of(other)[0]
    for name in filter(None, (led, victim)):
        pid = run.supervisor.pid(name)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    if led is not None:
        run.feeders.pop(led, None)
    await _require(run, lambda: run.leader() is not None, f"day {number}: no feeder led")
    await _require(run, lambda: len(run.passing.versions) > version + 1, f"day {number}: no two versions came")
    await anyio.sleep_until(began + day_s)
    leader = run.leader()
    metrics = run.feeders[leader].metrics if leader else {}
    return Day(
        day=number,
        killed=victim,
        admitted=len(run.passing.admitted),
        judged=len(run.passing.judged),
        version=run.passing.versions[-1],
        aged_out=(await run.bus.stream_state(run.subjects.judged)).first_seq - 1,
        takeover_records=int(metrics.get("resume_records", 0)),
        takeover_s=round(metrics.get("resume_s", 0.0), 3),
    )
