"""The commands for workers on several nodes: node, launch, drain, restart."""

import argparse
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from ops.commands.arguments import above_zero, add_run
from ops.commands.execution import interruptible, joined_run
from ops.commands.listing import Commands

if TYPE_CHECKING:
    from ops.processes.workers import Selection
    from ops.run.folder import RunFolder
    from schemas.config import Config

_ROLES = ("browser", "policy", "judge", "archiver", "feeder", "trainer")
_NODE_EXAMPLE = "millrace node --file nodes.yaml --name cpu-1"
_LAUNCH_EXAMPLE = """\
millrace launch --file nodes.yaml --with ssh --cluster cluster
millrace launch --file nodes.yaml --with systemd --out launch"""
_DRAIN_EXAMPLE = """\
millrace drain browser-2 --run-dir runs/mine
millrace drain --role browser --file nodes.yaml --no-wait"""
_RESTART_EXAMPLE = """\
millrace restart --all --run-dir runs/mine
millrace restart --role policy --file nodes.yaml --cluster cluster"""
_DRAIN_S = 3600.0
_RESTART_S = 600.0


def add_commands(commands: Commands) -> None:
    node = commands.add("node", "run the roles that a node file gives this node", _node, example=_NODE_EXAMPLE)
    _add_file(node)
    node.add_argument("--name", default=socket.gethostname(), help="the node's in the file (default: %(default)s)")
    node.add_argument("--check", action="store_true", help="read the files, list the processes, start nothing")
    _add_launch(commands)
    drain = commands.add("drain", "have workers finish what they hold, and leave", _drain, example=_DRAIN_EXAMPLE)
    _add_selection(drain)
    _add_timeout(drain, _DRAIN_S, "how long to watch; a worker goes on draining after that")
    drain.add_argument("--no-wait", action="store_true", help="tell them, and return")
    restart = commands.add(
        "restart", "drain workers one at a time, each started anew before the next", _restart, example=_RESTART_EXAMPLE
    )
    _add_selection(restart)
    _add_timeout(restart, _RESTART_S, "how long one worker may take to leave and come back")


def _add_launch(commands: Commands) -> None:
    launch = commands.add(
        "launch", "start nodes over ssh, or write what others start them with", _launch, example=_LAUNCH_EXAMPLE
    )
    _add_file(launch)
    add = launch.add_argument
    add("--with", dest="means", required=True, choices=("ssh", "systemd", "slurm", "kubernetes"), help="what starts them")
    add("--name", action="append", default=[], metavar="NODE", help="a node of the file; once for each (default: all)")
    add("--out", type=Path, default=Path("launch"), metavar="DIR", help="what is written goes there (default: %(default)s)")
    _add_cluster(launch)
    act = launch.add_mutually_exclusive_group()
    act.add_argument(
        "--drain", dest="act", action="store_const", const="drain", help="ssh: nodes finish what they hold, and leave"
    )
    act.add_argument("--stop", dest="act", action="store_const", const="stop", help="ssh: nodes leave at once")
    add("--dry-run", action="store_true", help="ssh: print the commands, run none")
    add("--no-setup", action="store_true", help="nodes have their packages: install none")
    add("--image", default="millrace", help="kubernetes: of workers (default: %(default)s)")
    add("--server-image", default="nats:2.14-alpine", help="kubernetes: of servers (default: %(default)s)")


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", type=Path, default=Path("nodes.yaml"), help="the node file (default: %(default)s)")


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--role", action="append", default=[], choices=_ROLES, help="all workers of a role; once for each")
    parser.add_argument("--all", action="store_true", help="every worker of the run")
    parser.add_argument("--file", type=Path, help="the run of a node file, with the keys of --cluster")
    _add_cluster(parser)
    add_run(parser)
    parser.add_argument("overrides", nargs="*", metavar="WORKER", help="by name; KEY=VALUE overrides the configuration")


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster", type=Path, default=Path("cluster"), metavar="DIR", help="of millrace cluster (default: %(default)s)"
    )


def _add_timeout(parser: argparse.ArgumentParser, default_s: float, what: str) -> None:
    parser.add_argument(
        "--timeout", type=above_zero, default=default_s, metavar="SECONDS", help=f"{what} (default: %(default)g)"
    )


@interruptible
async def _node(options: argparse.Namespace) -> int:
    from ops.launch.node import main

    return await main(options.file.resolve(), options.name, check=options.check)


@interruptible
async def _launch(options: argparse.Namespace) -> int:
    from anyio.to_thread import run_sync

    from ops.launch.kubernetes import Images
    from ops.launch.launching import Plan, launch

    if options.means != "ssh" and (options.act or options.dry_run):
        options.parser.error("--drain, --stop and --dry-run are for --with ssh: the others have commands of their own")
    plan = Plan(
        file=options.file.resolve(),
        means=options.means,
        names=tuple(options.name),
        out=options.out,
        cluster=options.cluster,
        images=Images(workers=options.image, servers=options.server_image),
        act=options.act or "start",
        dry_run=options.dry_run,
        options=" --no-setup" if options.no_setup else "",
    )
    return await run_sync(launch, plan)


@interruptible
async def _drain(options: argparse.Namespace) -> int:
    from ops.processes.leaving import drain

    chosen = _selection(options)
    folder, config = _run_of(options)
    return await drain(folder, config, chosen, wait=not options.no_wait, timeout_s=options.timeout)


@interruptible
async def _restart(options: argparse.Namespace) -> int:
    from ops.processes.leaving import restart

    chosen = _selection(options)
    folder, config = _run_of(options)
    return await restart(folder, config, chosen, timeout_s=options.timeout)


def _run_of(options: argparse.Namespace) -> "tuple[RunFolder, Config]":
    """As `joined_run`; of a node file without making a folder."""
    if options.file is None:
        return joined_run(options)
    from ops.launch.node_file import administered
    from ops.run.folder import RunFolder

    return RunFolder(options.file.resolve().parent), administered(options.file, options.cluster, options.overrides)


def _selection(options: argparse.Namespace) -> "Selection":
    """Takes the names out of what was given; raises `ConfigurationError` where nobody is named."""
    from ops.processes.workers import Selection
    from schemas.messages import Role

    names = tuple(text for text in options.overrides if "=" not in text)
    options.overrides = [text for text in options.overrides if "=" in text]
    return Selection(names=names, roles=tuple(map(Role, options.role)), everybody=options.all)
