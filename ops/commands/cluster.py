"""Writes configuration, certificates and keys for NATS servers, and says what to copy where and what to start."""

import argparse
import shlex
from dataclasses import replace
from pathlib import Path

from bus.server.cluster_files import ClusterPlan, client_url, server_folder, write_cluster
from bus.server_binary import OLDEST_OF_CLUSTERS
from ops.commands.arguments import add_config, add_overrides, port
from ops.commands.execution import interruptible
from ops.config.loading import load_config
from ops.config.overrides import as_overrides
from ops.console.terminal import Console
from schemas.ids import RunName, subject_token

EXAMPLE = """\
millrace cluster --out cluster --server nats.lan --run mine
millrace cluster --out cluster --server a.lan --server b.lan --server c.lan"""
_SHELL = frozenset('\\"$`!')
"""What means something to a shell within double quotes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="folder to write; keep it private")
    add("--server", action="append", required=True, metavar="HOST", help="name or address of one server; once for each")
    add("--run", action="append", metavar="NAME", dest="runs", help="run to make an account for; once for each")
    add("--client-port", type=port, default=4222, metavar="PORT", help="for workers (default: %(default)s)")
    add("--cluster-port", type=port, default=6222, metavar="PORT", help="among the servers (default: %(default)s)")
    add("--monitor-port", type=port, default=8222, metavar="PORT", help="on loopback only (default: %(default)s)")
    add("--sync-interval", help="between forced writes to disk, or always (default: bus_config.sync_interval)")
    add_config(parser, "recipe or .yaml file of the runs (default: %(default)s)", default="default")
    add_overrides(parser)


@interruptible
async def run(options: argparse.Namespace) -> int:
    out = options.out.resolve()
    bus = load_config(options.config, options.overrides).bus_config
    if options.sync_interval is not None:
        bus = replace(bus, sync_interval=options.sync_interval)
    names = [RunName(subject_token(name, what="--run")) for name in options.runs or ()] or [bus.run]
    plan = ClusterPlan(
        hosts=tuple(options.server),
        runs=tuple(replace(bus, run=name) for name in names),
        client_port=options.client_port,
        cluster_port=options.cluster_port,
        monitor_port=options.monitor_port,
        sync_interval=bus.sync_interval,
    )
    await write_cluster(out, plan)
    Console(soft_wrap=True, highlight=False).print(_summary(out, plan), markup=False)
    return 0


def _summary(out: Path, plan: ClusterPlan) -> str:
    run = plan.runs[0].run
    replicas = 1 if len(plan.hosts) == 1 else 3
    reached = {
        "bus_config.url": client_url(plan),
        "bus_config.ca_file": str(out / "ca.pem"),
        "bus_config.keys": str(out / "keys" / run),
    }
    version = ".".join(map(str, OLDEST_OF_CLUSTERS))
    servers = "\n".join(f"   {server_folder(out, host)}  ->  {host}" for host in plan.hosts)
    return f"""\
1. Copy each folder to its host, readable by its owner only:
{servers}
2. On each host, in the copied folder, start the server ({version} or newer; it keeps its data in {plan.store_dir}/ there):
   nats-server -c nats.conf
3. Once, with the administrator's key, create the streams of each run:
   millrace streams --config RECIPE bus_config.run={run} bus_config.replicas={replicas} \\
     {" ".join(map(_typed, as_overrides(reached)))}
4. Give each node ca.pem and the keys of its own roles alone, as in {out / "keys" / run}/browser.seed for browsers, and start
   its roles with the same bus_config.run, url, ca_file and keys.
Keep {out} itself private and off the nodes: it holds the keys of every role and of the authority (ca.key)."""


def _typed(override: str) -> str:
    """As a shell takes it; in double quotes where it can be, which leave the override's own readable."""
    return shlex.quote(override) if _SHELL & set(override) else f'"{override}"'
