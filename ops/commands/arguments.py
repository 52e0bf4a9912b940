"""Arguments that several commands share, and the numbers they take. Loads nothing of ours."""

import argparse
from pathlib import Path

RUN_DIR = Path("runs/quickstart")


def add_run_dir(parser: argparse.ArgumentParser, what: str = "folder of the run") -> None:
    parser.add_argument("--run-dir", type=Path, default=RUN_DIR, metavar="DIR", help=f"{what} (default: %(default)s)")


def add_overrides(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "overrides", nargs="*", metavar="KEY=VALUE", help="configuration to override, as in policy_config.top_k=5"
    )


def add_joining(parser: argparse.ArgumentParser) -> None:
    """What `ops.commands.execution.joined_run` reads."""
    add_run(parser)
    add_overrides(parser)


def add_run(parser: argparse.ArgumentParser) -> None:
    """What `joined_run` reads, but for the overrides."""
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help=f"folder of the run (default: {RUN_DIR})")
    parser.add_argument("--config", metavar="RECIPE", help="recipe or .yaml file; without it, the run's stored configuration")


def add_worker(parser: argparse.ArgumentParser) -> None:
    add_joining(parser)
    parser.add_argument("--name", help="this worker's name, unique in the run (default: role, host and process)")


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def seed_range(text: str) -> range:
    """`0:100` for the seeds 0 to 99."""
    first, colon, end = text.partition(":")
    if not colon or not first.isdecimal() or not end.isdecimal() or int(first) >= int(end):
        raise argparse.ArgumentTypeError(
            f"{text!r} names no seeds: write two whole numbers as in 0:100, which ends before 100"
        )
    return range(int(first), int(end))


def port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, a whole number from 1 to 65535")
    return int(text)


def above_zero(text: str) -> float:
    """A finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0: write a number such as 1 or 2.5")
    return number
