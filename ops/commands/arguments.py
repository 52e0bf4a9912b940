"""Arguments that several commands share, and the numbers they take. Loads nothing heavy."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from ops.console.completion import completed_by, overrides, recipes_and_files

RUN_DIR = Path("runs/quickstart")


def add_run_dir(
    parser: argparse._ActionsContainer, *, positional: bool = True, settle: Callable[[argparse.Namespace], None] | None = None
) -> None:
    """The run's folder, as `run_dir` in the namespace: a word of its own, or `--run-dir`.

    Args:
        positional: false where actions of the command stand in the word's place.
        settle: in place of what fills in the default.
    """
    help_ = f"folder of the run (default: {RUN_DIR})"
    if positional:
        parser.add_argument("folder", nargs="?", metavar="RUN_DIR", help=help_)
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help="the same" if positional else help_)
    parser.set_defaults(settle=settle or settle_run_dir)


def add_source(parser: argparse.ArgumentParser) -> None:
    """A run or an archive to read from, as `source` in the namespace."""
    parser.add_argument(
        "source", type=Path, nargs="?", metavar="SOURCE", help=f"folder of a run or an archive (default: {RUN_DIR})"
    )
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help="the same")
    parser.set_defaults(settle=_settle_source)


def add_overrides(parser: argparse.ArgumentParser) -> None:
    written = parser.add_argument(
        "overrides", nargs="*", metavar="KEY=VALUE", help="configuration to override, as in policy_config.top_k=5"
    )
    completed_by(written, overrides)


def add_config(parser: argparse._ActionsContainer, help_: str, *, default: str | None = None) -> None:
    """A configuration to begin from, as `config` in the namespace."""
    written = parser.add_argument("--config", metavar="RECIPE", default=default, help=help_)
    completed_by(written, recipes_and_files)


def add_joining(parser: argparse.ArgumentParser) -> None:
    """What `ops.commands.execution.joined_run` reads. The run's folder may stand among the overrides."""
    add_run(parser)
    add_overrides(parser)
    parser.set_defaults(settle=settle_run)


def add_run(parser: argparse.ArgumentParser) -> None:
    """What `joined_run` reads, but for the overrides."""
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help=f"folder of the run (default: {RUN_DIR})")
    add_config(parser, "recipe or .yaml file; without it, the run's stored configuration")


def add_worker(parser: argparse.ArgumentParser) -> None:
    add_joining(parser)
    parser.add_argument("--name", help="this worker's name, unique in the run (default: role, host and process)")


def settle_words(options: argparse.Namespace, rest: list[str]) -> argparse.Namespace:
    """Tells overrides and the run's folder apart, wherever they stand, and fills in the default of the folder.

    Args:
        rest: what argparse could not place; it ends a list of words at the next option.

    Raises:
        SystemExit: an argument that the command does not have, after saying so on stderr.
    """
    parser: argparse.ArgumentParser = options.parser
    if rest and not (hasattr(options, "overrides") and all("=" in word and not word.startswith("-") for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if hasattr(options, "overrides"):
        options.overrides = [*options.overrides, *rest]
    settle: Callable[[argparse.Namespace], None] | None = getattr(options, "settle", None)
    if settle is not None:
        settle(options)
    return options


def _settle_source(options: argparse.Namespace) -> None:
    options.source = _one_of(options, [options.source, options.run_dir]) or RUN_DIR


def settle_run(options: argparse.Namespace) -> None:
    """The folder among words and overrides; None where nobody names one."""
    words = [*filter(None, [getattr(options, "folder", None)]), *getattr(options, "overrides", ())]
    folders = [Path(word) for word in words if "=" not in word and not word.startswith("~")]
    overrides = [word for word in words if "=" in word or word.startswith("~")]
    if overrides and not hasattr(options, "overrides"):
        options.parser.error(f"unrecognized arguments: {' '.join(overrides)}")
    options.overrides = overrides
    options.run_dir = _one_of(options, [*folders, options.run_dir])


def settle_run_dir(options: argparse.Namespace) -> None:
    """The same, with the default."""
    settle_run(options)
    options.run_dir = options.run_dir or RUN_DIR


def _one_of(options: argparse.Namespace, folders: Sequence[Path | None]) -> Path | None:
    given = [folder for folder in folders if folder is not None]
    if len(given) > 1:
        options.parser.error(f"{' and '.join(map(str, given))} are several folders: write one")
    return given[0] if given else None


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
