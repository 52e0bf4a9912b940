"""What judging costs and how fast it is: calls and tokens, speed, what a kill costs, and what a real server has cached.

    python -m benchmarks.judging [--parts calls,speed,kills,prefix]

Each part has its baseline in the same run. Endpoints are scripted ones on loopback, that of `prefix` is a real vLLM server on
CPU with a tiny model. Takes some three minutes.
"""

import argparse
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio

from benchmarks import judging_calls, judging_kills, judging_prefix, judging_speed
from benchmarks.report import RESULTS, Report
from ops.run.logs import quiet_logs

_PARTS: Final[dict[str, tuple[Callable[[], Awaitable[Sequence[Any]]], Callable[[Sequence[Any]], Report]]]] = {
    "calls": (judging_calls.measure, judging_calls.report),
    "speed": (judging_speed.measure, judging_speed.report),
    "kills": (judging_kills.measure, judging_kills.report),
    "prefix": (judging_prefix.measure, judging_prefix.report),
}


@quiet_logs()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(_PARTS), help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    for part in options.parts.split(","):
        measure, report = _PARTS[part]
        load = f"machine's load in the minute before: {os.getloadavg()[0]:.1f}"
        made = report(anyio.run(measure, backend_options={"use_uvloop": True}))
        replace(made, notes=(*made.notes, load)).publish(options.out)


if __name__ == "__main__":
    main()
