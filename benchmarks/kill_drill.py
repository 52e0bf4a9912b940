"""Kill drill: a quickstart for each role, in which that role is killed while it learns; it has to end as if nothing had been.

    python -m benchmarks.kill_drill --out drill            # about five minutes a role on two cores
    python -m benchmarks.kill_drill --out drill --roles trainer,nats-server
    python -m benchmarks.kill_drill --out drill --family miniwob --together   # about twelve, all roles in one

Prints a table and writes the same figures to <out>/drill.json.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ops.quickstart.recipe import FAMILIES
from tests.support.drills.quickstart_process import VICTIMS, find, quickstart, wait_for

_LIMIT_S = 1800.0
_COLUMNS = (
    "warm_start_success", "final_success", "loop_seconds", "num_restarts", "num_tasks", "num_trajectories",
    "num_judgements", "num_duplicates", "max_mismatch", "audit_holds",
)  # fmt: skip


def drill(roles: Sequence[str], folder: Path, *, family: str, seed: int, first: int) -> dict[str, object]:
    """One quickstart in which each role is killed once, after so many versions and every second one from there; its result."""
    with quickstart(folder, "--family", family, "--seed", str(seed)) as process:
        for number, role in enumerate(roles):
            times = first + 2 * number
            wait_for(process, "version_published", folder / "logs" / "trainer-1.log", times=times, limit_s=_LIMIT_S)
            find(process, VICTIMS[role]).kill()
        process.wait(_LIMIT_S)
    result: dict[str, object] = json.loads((folder / "result.json").read_text())
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--roles", default=",".join(VICTIMS), help="default: all of %(default)s")
    parser.add_argument("--family", choices=FAMILIES, default="click_button", help="of the pages (default: %(default)s)")
    parser.add_argument("--together", action="store_true", help="all in one quickstart, one after the other")
    parser.add_argument("--seed", type=int, default=0, help="of the first role; counts up from there")
    options = parser.parse_args()
    results: dict[str, dict[str, object]] = {}
    named = options.roles.split(",")
    for number, roles in enumerate([named] if options.together else [[role] for role in named]):
        name, first = ("together", 2) if options.together else (roles[0], 5)
        results[name] = drill(roles, options.out / name, family=options.family, seed=options.seed + number, first=first)
        (options.out / "drill.json").write_text(json.dumps(results, indent=2) + "\n")
    table = Table("killed", *_COLUMNS)
    for role, result in results.items():
        table.add_row(role, *(f"{value:.3g}" if isinstance(value := result[name], float) else str(value) for name in _COLUMNS))
    Console(width=180).print(table)
    return 0 if all(result["audit_holds"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
