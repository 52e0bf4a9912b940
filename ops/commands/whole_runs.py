"""The commands that play a whole run on this machine: quickstart, eval, replay, chaos."""

import argparse
from pathlib import Path

from ops.commands.arguments import RUN_DIR, above_zero, add_overrides, add_run_dir, count, seed
from ops.commands.execution import guarded, interruptible
from ops.commands.listing import Commands
from ops.commands.replay import add_replay_arguments, request_of
from ops.config.recipes import objective_names

_CHAOS_EXAMPLE = """\
millrace chaos --out runs/chaos --episodes 2000 --servers 3
millrace chaos --kinds kill stop --set env_config.server_size=8
millrace chaos --out runs/long --duration 1800 --fault-interval 0.5
millrace chaos --run-dir runs/mine --duration 120
millrace chaos --out runs/days --days 40"""
_OWN_RUN_S = 60.0
"""Of faults into a run of one's own."""
_EVAL_EXAMPLE = """\
millrace eval 30 --run-dir runs/quickstart --repeat 4
millrace eval models/mine --config rollout_test --tasks tasks.jsonl
millrace eval --api NAME --base-url https://host/v1 --key-env KEY \\
    --tasks tasks.jsonl
millrace eval --compare one/result.json other/result.json"""
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
    _add_eval_arguments(
        commands.add("eval", "evaluate a model on a file of tasks, or compare evaluations", _eval, example=_EVAL_EXAMPLE)
    )
    add_replay_arguments(
        commands.add(
            "replay", "put some stored episodes into a new run: to train, judge or consume", _replay, example=_REPLAY_EXAMPLE
        )
    )
    _add_chaos_arguments(
        commands.add("chaos", "kill, stop and cut off parts of a run, then count its episodes", _chaos, example=_CHAOS_EXAMPLE)
    )


def _add_eval_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", nargs="?", metavar="MODEL", help="a version of the run that is kept, or a model's folder")
    add(
        "--run-dir",
        type=Path,
        metavar="DIR",
        help=f"the run, whose configuration counts (default: {RUN_DIR})",
    )
    add("--config", metavar="RECIPE", help="recipe or .yaml file in place of the run's configuration")
    add("--api", metavar="NAME", help="a model behind an OpenAI-compatible endpoint, in place of MODEL")
    add("--base-url", default="", metavar="URL", help="of the endpoint, as in https://host/v1")
    add("--key-env", default="", metavar="VAR", help="environment variable with its key (default: OPENAI_API_KEY)")
    add("--tasks", type=Path, metavar="FILE", help="task file (default: the test tasks of the configuration)")
    add("--repeat", type=count, metavar="K", help="episodes of each task (default: env_config.test_tasks_repeat_times)")
    add("--seed", type=seed, metavar="N", help="of sampling and intervals (default: feeder_config.seed)")
    add("--out", type=Path, metavar="DIR", help="folder of the evaluation (default: one of its own in DIR/evaluations)")
    add("--compare", nargs="+", type=Path, metavar="RESULT", help="compare evaluations by their result.json instead")
    add_overrides(parser)


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


@interruptible
async def _quickstart(options: argparse.Namespace) -> int:
    from ops.quickstart.quickstart import main

    return await main(
        run_dir=options.run_dir.resolve(),
        seed=options.seed,
        family=options.family,
        objective=options.objective,
        mode=options.mode,
        overrides=tuple(options.overrides),
    )


def _eval(options: argparse.Namespace) -> int:
    # What argparse took for the model may be the first override.
    if options.model is not None and "=" in options.model:
        options.model, options.overrides = None, [options.model, *options.overrides]
    given = [name for name in ("model", "api", "compare") if getattr(options, name)]
    if len(given) != 1:
        options.parser.error("write one of MODEL, --api NAME and --compare RESULT")
    if options.base_url and not options.api:
        options.parser.error("--base-url is of a model behind an endpoint: name it with --api")
    return _compare(options) if options.compare else _eval_one(options)


@interruptible
async def _compare(options: argparse.Namespace) -> int:
    from ops.commands.eval import compare_files

    return compare_files(options.compare)


@interruptible
async def _eval_one(options: argparse.Namespace) -> int:
    from ops.run.extras import require_extra

    require_extra("pyarrow", "archive")
    from ops.analysis.evaluation.plan import Request
    from ops.commands.eval import main

    run_dir = options.run_dir if options.run_dir or options.config or options.api else RUN_DIR
    request = Request(
        model=options.model or "",
        api=options.api or "",
        base_url=options.base_url,
        key_env=options.key_env,
        run_dir=run_dir.resolve() if run_dir else None,
        recipe=options.config,
        tasks=options.tasks,
        repeat=options.repeat,
        seed=options.seed,
        out=options.out.resolve() if options.out else None,
        overrides=tuple(options.overrides),
    )
    return await main(request)


@guarded
@interruptible
async def _replay(options: argparse.Namespace) -> int:
    from ops.replay.into_run import main
    from ops.replay.training import main as train

    if options.train is None:
        return await main(request_of(options))
    return await train(request_of(options), num_passes=options.passes, overrides=tuple(options.train))


@interruptible
async def _chaos(options: argparse.Namespace) -> int:
    from ops.drills.faults import FaultKind

    kinds = FaultKind.named(options.kinds)
    if options.run_dir is not None:
        from ops.commands.own_run_drill import main as disturb

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
    from ops.commands.drill import drill_main
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
