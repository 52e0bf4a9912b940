"""Kills, stops and cuts off parts of a run, then counts its episodes."""

import argparse
from pathlib import Path

from ops.commands.arguments import above_zero, count, seed
from ops.commands.execution import interruptible

EXAMPLE = """\
millrace chaos --out runs/chaos --episodes 2000 --servers 3
millrace chaos --kinds kill stop --set env_config.server_size=8
millrace chaos --out runs/long --duration 1800 --fault-interval 0.5
millrace chaos --run-dir runs/mine --duration 120
millrace chaos --out runs/days --days 40"""
_OF_RUN_DIR = {"run_dir", "duration", "fault_interval", "kinds"}
_OF_DAYS = {"out", "overrides", "days", "day"}
_OF_DRILL = {"out", "episodes", "servers", "browser", "limit", "overrides", "duration", "fault_interval", "kinds"}
_OWN_RUN_S = 60.0
"""Of faults into a run of one's own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", type=Path, default=Path("runs/chaos"), metavar="DIR", help="new folder of the drill (default: %(default)s)")
    add("--episodes", type=count, default=5000, metavar="N", help="training episodes of the drill (default: %(default)s)")
    add("--servers", type=int, choices=(1, 3), default=1, help="nats-servers of the drill (default: %(default)s)")
    add("--browser", choices=("simulated", "playwright"), default="simulated", help="what plays (default: %(default)s)")
    add("--limit", type=above_zero, default=1800.0, metavar="S", help="seconds until it is given up (default: %(default)s)")
    add("--set", nargs="+", default=(), metavar="KEY=VALUE", dest="overrides", help="configuration of the drill to override")
    add("--run-dir", type=Path, metavar="DIR", help="no drill: faults into the roles of this run that are on this machine")
    add(
        "--duration",
        type=above_zero,
        metavar="S",
        help="seconds after which a drill comes to its end, instead of --episodes; of --run-dir's faults (60)",
    )
    add("--seed", type=seed, metavar="N", default=0, help="of tasks and faults (default: %(default)s)")
    add(
        "--fault-interval",
        type=above_zero,
        default=2.0,
        metavar="S",
        help="mean seconds between two (default: %(default)s)",
    )
    add("--days", type=count, metavar="N", help="a run of N days instead, with records that age out and a failover a day")
    add("--day", type=above_zero, default=6.0, metavar="S", help="seconds that stand for a day (default: %(default)s)")
    add("--kinds", nargs="+", default=(), metavar="KIND", help="kinds of fault (default: all that are possible)")
    parser.set_defaults(settle=_settle)


def _settle(options: argparse.Namespace) -> None:
    """Refuses what has no meaning for the drill that is asked for."""
    beside, taken = "without --days", _OF_DRILL
    if options.run_dir is not None:
        beside, taken = "with --run-dir", _OF_RUN_DIR
    elif options.days is not None:
        beside, taken = "with --days", _OF_DAYS
    others = (_OF_RUN_DIR | _OF_DAYS | _OF_DRILL) - taken
    given = sorted(name for name in others if _is_given(options, name))
    if given:
        flags = " and ".join(f"--{'set' if name == 'overrides' else name.replace('_', '-')}" for name in given)
        said = (
            f"{flags} have no meaning {beside}: leave them" if len(given) > 1 else f"{flags} has no meaning {beside}: leave it"
        )
        options.parser.error(f"{said} out")


def _is_given(options: argparse.Namespace, name: str) -> bool:
    value: object = getattr(options, name)
    default: object = options.parser.get_default(name)
    return (value or default) != default


@interruptible
async def run(options: argparse.Namespace) -> int:
    from ops.drills.faults import FaultKind

    kinds = FaultKind.named(options.kinds)
    if options.run_dir is not None:
        from ops.drills.disturbing import main as disturb

        return await disturb(
            options.run_dir.resolve(),
            kinds=kinds,
            seed=options.seed,
            interval_s=options.fault_interval,
            duration_s=options.duration or _OWN_RUN_S,
        )
    command = " ".join(("millrace", *options.given))
    if options.days is not None:
        from ops.drills.days import days_main
        from ops.drills.scaled_run import ScaledSettings

        scaled = ScaledSettings(folder=options.out, day_s=options.day, seed=options.seed, overrides=tuple(options.overrides))
        return await days_main(scaled, num_days=options.days, command=command)
    from ops.drills.drilling import drill_main
    from ops.drills.settings import DrillSettings

    settings = DrillSettings(
        folder=options.out,
        num_episodes=options.episodes,
        num_servers=options.servers,
        seed=options.seed,
        fault_interval_s=options.fault_interval,
        kinds=kinds,
        browser=options.browser,
        duration_s=options.duration,
        limit_s=options.limit,
        overrides=tuple(options.overrides),
    )
    return await drill_main(settings, command=command)
