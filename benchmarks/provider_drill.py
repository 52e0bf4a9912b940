"""Browser sessions of a provider that fails in every way, while the workers that hold them are killed.

    python -m benchmarks.provider_drill                                  # some five minutes on two cores
    python -m benchmarks.provider_drill --episodes 200 --chromium 0

A whole run with a scripted provider on loopback, twice: with simulated pages behind the sessions, then with a real Chromium in
each. A third of the sessions is slow, refused, not told of, opened twice, unreachable, lost, expired or not ended when asked;
the account has room for fewer than there are slots. Browser workers are killed (SIGKILL) all the time, and some of them never
come back. The provider ends no session by itself, neither with its connection nor after its lease: what it counts was ended by
workers.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from benchmarks.report import RESULTS, Report
from ops.run.logs import quiet_logs
from tests.support.browsers.scripted_provider import KEY, Fault, Session
from tests.support.drills.provider_drill import LEASE_S, Part, Row, drill, provider_of


@dataclass(frozen=True)
class FaultRow:
    fault: str
    browsers: str
    sessions: int
    oldest_s: float
    left: int


def fault_rows(part: Part, sessions: Sequence[Session]) -> list[FaultRow]:
    of = {fault: [session for session in sessions if session.fault is fault] for fault in Fault}
    return [
        FaultRow(
            fault, part.browsers, len(had), max((each.age_s for each in had), default=0.0), sum(s.is_running for s in had)
        )
        for fault, had in of.items()
    ]


async def run(parts: Sequence[Part]) -> tuple[list[Row], list[FaultRow]]:
    os.environ["BROWSERBASE_API_KEY"] = KEY
    rows: list[Row] = []
    by_fault: list[FaultRow] = []
    for part in parts:
        with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as profiles:
            async with provider_of(part, Path(profiles)) as provider:
                rows.append(await drill(part, provider, Path(name)))
                by_fault += fault_rows(part, list(provider.sessions.values()))
    return rows, by_fault


def parts(episodes: int, chromium: int) -> list[Part]:
    real = (
        "browser_config.engine=playwright",
        "browser_config.viewport_width=320",
        "browser_config.viewport_height=240",
        "env_config.train_difficulty_max_steps={easy: 4, medium: 4, hard: 4}",
    )
    both = (
        Part("doubles", episodes, workers=3, slots=8, room=36, kill_every_s=4.0, lives_s=0.3, mortal=3),
        Part("Chromium", chromium, workers=1, slots=2, room=3, kill_every_s=25.0, lives_s=1.5, mortal=1, overrides=real),
    )
    return [part for part in both if part.episodes]


@quiet_logs()
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=2000, help="with simulated pages (default: %(default)s)")
    parser.add_argument("--chromium", type=int, default=40, help="with a Chromium each (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows, by_fault = anyio.run(run, parts(options.episodes, options.chromium), backend_options={"use_uvloop": True})
    Report(
        name="provider_drill",
        title="Sessions of a provider that fails, held by workers that are killed",
        rows=rows,
        notes=(
            f"targets: nothing lost, no failure rewarded, no orphan; no session older than its lease of {LEASE_S:g} s",
            "the provider ends nothing by itself: these are its own counts",
        ),
    ).publish(options.out)
    Report(name="provider_faults", title="The same sessions by what was wrong with them", rows=by_fault).publish(options.out)
    kept = all(row.lost == row.rewarded_failures == row.orphans == 0 and row.oldest_s < LEASE_S for row in rows)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
