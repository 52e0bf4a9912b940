"""The commands of whoever looks after machines and servers: doctor, streams, cluster."""

import argparse
from pathlib import Path

from ops.commands.arguments import add_joining, add_overrides, port
from ops.commands.execution import interruptible, joined_run
from ops.commands.listing import Commands

_CLUSTER_EXAMPLE = """\
millrace cluster --out cluster --server nats.lan --run mine
millrace cluster --out cluster --server a.lan --server b.lan --server c.lan"""


def add_commands(commands: Commands) -> None:
    commands.add("doctor", "say what is installed, what is missing, and how to get it", _doctor)
    streams = commands.add(
        "streams",
        "create or change a run's streams, as its administrator",
        _streams,
        example="millrace streams --config RECIPE bus_config.url=tls://nats-1.lan:4222",
    )
    add_joining(streams)
    cluster = commands.add(
        "cluster", "write configuration, certificates and keys for NATS servers", _cluster, example=_CLUSTER_EXAMPLE
    )
    add = cluster.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="folder to write; keep it private")
    add("--server", action="append", required=True, metavar="HOST", help="name or address of one server; once for each")
    add("--run", action="append", metavar="NAME", dest="runs", help="run to make an account for; once for each")
    add("--client-port", type=port, default=4222, metavar="PORT", help="for workers (default: %(default)s)")
    add("--cluster-port", type=port, default=6222, metavar="PORT", help="among the servers (default: %(default)s)")
    add("--monitor-port", type=port, default=8222, metavar="PORT", help="on loopback only (default: %(default)s)")
    add("--sync-interval", help="between forced writes to disk, or always (default: bus_config.sync_interval)")
    add("--config", default="default", metavar="RECIPE", help="recipe or .yaml file of the runs (default: %(default)s)")
    add_overrides(cluster)


def _doctor(_: argparse.Namespace) -> int:
    from ops.commands.doctor import main

    return main()


@interruptible
async def _streams(options: argparse.Namespace) -> int:
    from ops.commands.streams import main

    return await main(*joined_run(options))


@interruptible
async def _cluster(options: argparse.Namespace) -> int:
    from ops.commands.cluster import main
    from ops.config.loading import load_config

    return await main(
        options.out.resolve(),
        load_config(options.config, options.overrides).bus_config,
        hosts=tuple(options.server),
        runs=tuple(options.runs or ()),
        client_port=options.client_port,
        cluster_port=options.cluster_port,
        monitor_port=options.monitor_port,
        sync_interval=options.sync_interval,
    )
