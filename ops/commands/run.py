"""Runs every role of a run on this machine."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ops.commands.arguments import add_overrides, count
from ops.commands.execution import interruptible, joined_run, planned_run

if TYPE_CHECKING:
    from schemas.config import Config

EXAMPLE = """\
millrace run update_online --run-dir runs/mine \\
    policy_config.base_model=models/mine env_config.train_tasks=tasks.jsonl
millrace run --run-dir runs/mine
millrace run mine.yaml --policy-gpus 0,1,2,3 --trainer-gpus 4,5 --dry-run"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "config",
        nargs="?",
        metavar="CONFIG",
        help="recipe or .yaml file; without it, the configuration that the run's folder holds",
    )
    add("--run-dir", type=Path, metavar="DIR", help="folder of the run (default: the configuration's save_path)")
    add("--browsers", type=count, default=1, metavar="N", help="browser processes (default: %(default)s)")
    add("--judges", type=count, default=1, metavar="N", help="judge processes (default: %(default)s)")
    add("--policies", type=count, metavar="N", help="policy processes (default: one, or one a GPU)")
    add("--policy-gpus", type=gpu_lists, default=(), metavar="LIST", help="as in 0,1,2, or 0+1,2+3 for two GPUs a process")
    add("--trainer-gpus", type=gpu_lists, default=(), metavar="LIST", help="as in 6,7: a rank each")
    add("--archive", action="store_true", help="store episodes in files too, as millrace archive does")
    add("--dry-run", action="store_true", help="print what would be started")
    add_overrides(parser)
    parser.set_defaults(settle=_settle)


@interruptible
async def run(options: argparse.Namespace) -> int:
    from ops.console.terminal import Console
    from ops.machine.machine import outline, run_here
    from ops.machine.placement import Wanted, shares_of, specs_of, visible_gpus

    if not options.dry_run:
        options.overrides += await _model_found(planned_run(options)[1])
    folder, config = planned_run(options) if options.dry_run else joined_run(options)
    wanted = Wanted(
        num_browsers=options.browsers,
        num_judges=options.judges,
        num_policies=options.policies,
        policy_gpus=options.policy_gpus,
        trainer_gpus=options.trainer_gpus,
        archives=options.archive,
    )
    which = ("--run-dir", str(folder.path), *(("--config", options.config) if options.config else ()), *options.overrides)
    specs = tuple(specs_of(shares_of(config, wanted, visible_gpus()), which))
    if options.dry_run:
        Console(soft_wrap=True).print(outline(config, specs))
        return 0
    return await run_here(folder, config, specs)


async def _model_found(config: "Config") -> list[str]:
    """What makes every role of this run begin with one model, fetched before there is a run."""
    from anyio.to_thread import run_sync

    from ops.launch.node_file import quoted
    from ops.run.base_models import pinned

    if config.policy_config.engine != "vllm":
        return []
    model = await run_sync(pinned, config.policy_config.base_model)
    return [f"policy_config.base_model={quoted(model)}"]


def _settle(options: argparse.Namespace) -> None:
    """What stands in the configuration's place may be the first override."""
    if options.config is not None and "=" in options.config:
        options.config, options.overrides = None, [options.config, *options.overrides]
    if options.config is None and options.run_dir is None:
        options.parser.error("write CONFIG for a new run, or --run-dir for one that goes on")


def gpu_lists(text: str) -> tuple[str, ...]:
    """`0+1,2+3`: what each process sees, as CUDA takes it."""
    entries = [entry.split("+") for entry in text.split(",")]
    if not all(gpu.isdecimal() for entry in entries for gpu in entry):
        raise argparse.ArgumentTypeError(f"{text!r} names no GPUs: write 0,1,2, or 0+1,2+3 for two a process")
    return tuple(",".join(entry) for entry in entries)
