"""Trains a model made on the spot, from nothing to the curve."""

import argparse

from ops.commands.arguments import add_overrides, add_run_dir, seed
from ops.commands.execution import interruptible
from ops.config.recipes import objective_names
from ops.quickstart.recipe import FAMILIES, OBSERVE, family_named

EXAMPLE = "millrace quickstart --run-dir runs/second --seed 1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_dir(parser)
    parser.add_argument(
        "--seed", type=seed, metavar="N", default=0, help="of tasks, model and sampling (default: %(default)s)"
    )
    parser.add_argument(
        "--family",
        choices=tuple(FAMILIES),
        metavar="NAME",
        default="miniwob",
        help=f"pages: {', '.join(FAMILIES)} (default: %(default)s)",
    )
    parser.add_argument(
        "--observe",
        choices=OBSERVE,
        default="",
        help="pages as pictures, or as lists of elements (default: the usual way of the pages)",
    )
    parser.add_argument(
        "--objective",
        choices=objective_names(),
        metavar="NAME",
        default="cloning",
        help=f"what it learns by: {', '.join(objective_names())} (default: %(default)s)",
    )
    parser.add_argument(
        "--mode",
        choices=("async", "sync"),
        default="async",
        help="episodes beside training, or between (default: %(default)s)",
    )
    add_overrides(parser)


@interruptible
async def run(options: argparse.Namespace) -> int:
    from ops.processes.packages import quickstart_extras, require

    require("the quickstart", *quickstart_extras())
    from ops.quickstart.quickstart import main

    return await main(
        run_dir=options.run_dir.resolve(),
        seed=options.seed,
        family=family_named(options.family, options.observe),
        objective=options.objective,
        mode=options.mode,
        overrides=tuple(options.overrides),
    )
