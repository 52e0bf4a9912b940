"""The commands that play a whole run on this machine: quickstart, evaluate, replay, chaos."""

import argparse
from pathlib import Path

from ops.commands.arguments import above_zero, add_overrides, add_run_dir, count, seed
from ops.commands.execution import guarded, interruptible
from ops.commands.listing import Commands
from ops.recipes import objective_names
from ops.replay_arguments import add_replay_arguments, request_of

_CHAOS_EXAMPLE = """\
millrace chaos --out runs/chaos --episodes 2000 --servers 3
millrace chaos --kinds kill stop --set env_config.server_size=8
millrace chaos --run-dir runs/mine --duration 120"""
_REPLAY_EXAMPLE = """\
millrace replay runs/quickstart --into runs/copy --speed 10
millrace replay runs/quickstart --into runs/offline --passes 2 --train"""


def add_commands(commands: Commands) -> None:
    quickstart = commands.add(
        "quickstart",
        "train a model made on the spot, from nothing to the curve",
        _quickstart,
        example="millrace quickstart --run-dir runs/second --seed 1",
    )
    add_run_dir(quickstart)
    quickstart.add_argument(
        "--seed", type=seed, metavar="N", default=0, help="of tasks, model and sampling (default: %(default)s)"
    )
    quickstart.add_argument(
        "--family",
        choices=("click_button", "find_button"),
        default="click_button",
        help="pages (default: %(default)s)",
    )
    quickstart.add_argument(
        "--objective",
        choices=objective_names(),
        metavar="NAME",
        default="cloning",
        help=f"what it learns by: {', '.join(objective_names())} (default: %(default)s)",
    )
    quickstart.add_argument(
        "--mode",
        choices=("async", "sync"),
        default="async",
        help="episodes beside training, or between (default: %(default)s)",
    )
    add_overrides(quickstart)
    evaluate = commands.add(
        "evaluate",
        "play the test split with one checkpoint, and score it",
        _evaluate,
        example="millrace evaluate --run-dir runs/quickstart --checkpoint 4",
    )
    add_run_dir(evaluate)
    evaluate.add_argument("--checkpoint", required=True, metavar="VERSION", help="a version that is kept, or a model's folder")
    add_overrides(evaluate)
    add_replay_arguments(
        commands.add(
            "replay", "put some stored episodes into a new run: to train, judge or consume", _replay, example=_REPLAY_EXAMPLE
        )
    )
    _add_chaos_arguments(
        commands.add("chaos", "kill, stop and cut off parts of a run, then count its episodes", _chaos, example=_CHAOS_EXAMPLE)
    )


def _add_chaos_arguments(parser: argparse.ArgumentParser) -> None:
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
        default=60.0,
        metavar="S",
        help="seconds of --run-dir's faults (default: %(default)s)",
    )
    add("--seed", type=seed, metavar="N", default=0, help="of tasks and faults (default: %(default)s)")
    add(
        "--fault-interval",
        type=above_zero,
        default=2.0,
        metavar="S",
        help="mean seconds between two (default: %(default)s)",
    )
    add("--kinds", nargs="+", default=(), metavar="KIND", help="kinds of fault (default: all that are possible)")


@interruptible
async def _quickstart(options: argparse.Namespace) -> int:
    from ops.quickstart import main

    return await main(
        run_dir=options.run_dir.resolve(),
        seed=options.seed,
        family=options.family,
        objective=options.objective,
        mode=options.mode,
        overrides=tuple(options.overrides),
    )


@interruptible
async def _evaluate(options: argparse.Namespace) -> int:
    from ops.evaluate import main

    return await main(options.run_dir.resolve(), options.checkpoint, tuple(options.overrides))


@guarded
@interruptible
async def _replay(options: argparse.Namespace) -> int:
    from ops.replay import main
    from ops.replay_train import main as train

    if options.train is None:
        return await main(request_of(options))
    return await train(request_of(options), num_passes=options.passes, overrides=tuple(options.train))


@interruptible
async def _chaos(options: argparse.Namespace) -> int:
    from ops.chaos.faults import FaultKind

    kinds = FaultKind.named(options.kinds)
    if options.run_dir is not None:
        from ops.chaos.own_run_command import main as disturb

        return await disturb(
            options.run_dir.resolve(),
            kinds=kinds,
            seed=options.seed,
            interval_s=options.fault_interval,
            duration_s=options.duration,
        )
    from ops.chaos.command import drill_main
    from ops.chaos.settings import DrillSettings

    settings = DrillSettings(
        folder=options.out,
        num_episodes=options.episodes,
        num_servers=options.servers,
        seed=options.seed,
        fault_interval_s=options.fault_interval,
        kinds=kinds,
        browser=options.browser,
        limit_s=options.limit,
        overrides=tuple(options.overrides),
    )
    return await drill_main(settings, command=" ".join(("millrace", *options.given)))
