"""Arguments of commands that read a node file, and of those that name some workers of a run."""

import argparse
from pathlib import Path

from ops.commands.arguments import above_zero, add_run
from ops.commands.execution import joined_run
from ops.processes.workers import Selection
from ops.run.folder import RunFolder
from schemas.config import Config
from schemas.messages import Role

_ROLES = ("browser", "policy", "judge", "archiver", "feeder", "trainer")


def add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", type=Path, default=Path("nodes.yaml"), help="the node file (default: %(default)s)")


def add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--role", action="append", default=[], choices=_ROLES, help="all workers of a role; once for each")
    parser.add_argument("--all", action="store_true", help="every worker of the run")
    parser.add_argument("--file", type=Path, help="the run of a node file, with the keys of --cluster")
    add_cluster(parser)
    add_run(parser)
    parser.add_argument("overrides", nargs="*", metavar="WORKER", help="by name; KEY=VALUE overrides the configuration")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster", type=Path, default=Path("cluster"), metavar="DIR", help="of millrace cluster (default: %(default)s)"
    )


def add_timeout(parser: argparse.ArgumentParser, default_s: float, what: str) -> None:
    parser.add_argument(
        "--timeout", type=above_zero, default=default_s, metavar="SECONDS", help=f"{what} (default: %(default)g)"
    )


def run_of(options: argparse.Namespace) -> tuple[RunFolder, Config]:
    """As `joined_run`; of a node file without making a folder."""
    if options.file is None:
        return joined_run(options)
    from ops.launch.node_file import administered

    return RunFolder(options.file.resolve().parent), administered(options.file, options.cluster, options.overrides)


def selection_of(options: argparse.Namespace) -> Selection:
    """Takes the names out of what was given; raises `ConfigurationError` where nobody is named."""
    names = tuple(text for text in options.overrides if "=" not in text)
    options.overrides = [text for text in options.overrides if "=" in text]
    return Selection(names=names, roles=tuple(map(Role, options.role)), everybody=options.all)
