"""Arguments that say which configuration a machine runs, and how many processes of each role on which of its GPUs."""

import argparse
from typing import TYPE_CHECKING

from ops.commands.arguments import count

if TYPE_CHECKING:
    from ops.machine.placement import Wanted


def add_shares(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--browsers", type=count, default=1, metavar="N", help="browser processes (default: %(default)s)")
    add("--judges", type=count, default=1, metavar="N", help="judge processes (default: %(default)s)")
    add("--policies", type=count, metavar="N", help="policy processes (default: one, or one a GPU)")
    add("--policy-gpus", type=gpu_lists, default=(), metavar="LIST", help="as in 0,1,2, or 0+1,2+3 for two GPUs a process")
    add("--trainer-gpus", type=gpu_lists, default=(), metavar="LIST", help="as in 6,7: a rank each")
    add("--archive", action="store_true", help="store episodes in files too, as millrace archive does")


def wanted(options: argparse.Namespace) -> "Wanted":
    from ops.machine.placement import Wanted

    return Wanted(
        num_browsers=options.browsers,
        num_judges=options.judges,
        num_policies=options.policies,
        policy_gpus=options.policy_gpus,
        trainer_gpus=options.trainer_gpus,
        archives=options.archive,
    )


def settle_config(options: argparse.Namespace) -> None:
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
    return tuple(",".join(str(int(gpu)) for gpu in entry) for entry in entries)
