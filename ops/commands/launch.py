"""Starts nodes over ssh, or writes what others start them with."""

import argparse
from pathlib import Path

from ops.commands.execution import interruptible
from ops.commands.node_arguments import add_cluster, add_file

EXAMPLE = """\
millrace launch --file nodes.yaml --with ssh --cluster cluster
millrace launch --file nodes.yaml --with slurm --place --out jobs"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file(parser)
    add = parser.add_argument
    add("--with", dest="means", required=True, choices=("ssh", "systemd", "slurm", "kubernetes"), help="what starts them")
    add("--name", action="append", default=[], metavar="NODE", help="a node of the file; once for each (default: all)")
    add("--out", type=Path, default=Path("launch"), metavar="DIR", help="what is written goes there (default: %(default)s)")
    add_cluster(parser)
    act = parser.add_mutually_exclusive_group()
    act.add_argument(
        "--drain", dest="act", action="store_const", const="drain", help="ssh: nodes finish what they hold, and leave"
    )
    act.add_argument("--stop", dest="act", action="store_const", const="stop", help="ssh: nodes leave at once")
    add("--dry-run", action="store_true", help="ssh: print the commands, run none")
    add(
        "--place",
        action="store_true",
        help="slurm, systemd: put what nodes need on the disk that they share with this machine",
    )
    add("--no-setup", action="store_true", help="nodes have their packages: install none")
    add("--image", default="millrace", help="kubernetes: of workers (default: %(default)s)")
    add("--server-image", default="nats:2.14-alpine", help="kubernetes: of servers (default: %(default)s)")


@interruptible
async def run(options: argparse.Namespace) -> int:
    from anyio.to_thread import run_sync

    from ops.launch.kubernetes import Images
    from ops.launch.launching import Plan, launch

    if options.means != "ssh" and (options.act or options.dry_run):
        options.parser.error("--drain, --stop and --dry-run are for --with ssh: the others have commands of their own")
    if options.place and options.means not in ("slurm", "systemd"):
        options.parser.error("--place is for --with slurm and systemd: ssh copies the files, and Kubernetes has Secrets")
    plan = Plan(
        file=options.file.resolve(),
        means=options.means,
        names=tuple(options.name),
        out=options.out,
        cluster=options.cluster,
        images=Images(workers=options.image, servers=options.server_image),
        act=options.act or "start",
        dry_run=options.dry_run,
        places=options.place,
        options=" --no-setup" if options.no_setup else "",
    )
    return await run_sync(launch, plan)
