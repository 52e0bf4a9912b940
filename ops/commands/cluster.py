"""`millrace cluster`: writes the servers' folders, and says what to copy where and what to start."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bus.server.cluster_files import ClusterPlan, client_url, server_folder, write_cluster
from bus.server_binary import OLDEST_OF_CLUSTERS
from ops.console.terminal import Console
from schemas.bus_config import BusConfig
from schemas.ids import RunName, subject_token


async def main(
    out: Path,
    bus: BusConfig,
    *,
    hosts: Sequence[str],
    runs: Sequence[str],
    client_port: int,
    cluster_port: int,
    monitor_port: int,
    sync_interval: str | None,
) -> int:
    """Writes `out`; `bus` holds what the runs have in common. Returns 0."""
    if sync_interval is not None:
        bus = replace(bus, sync_interval=sync_interval)
    names = [RunName(subject_token(run, what="--run")) for run in runs] or [bus.run]
    plan = ClusterPlan(
        hosts=tuple(hosts),
        runs=tuple(replace(bus, run=name) for name in names),
        client_port=client_port,
        cluster_port=cluster_port,
        monitor_port=monitor_port,
        sync_interval=bus.sync_interval,
    )
    await write_cluster(out, plan)
    Console(soft_wrap=True, highlight=False).print(_summary(out, plan), markup=False)
    return 0


def _summary(out: Path, plan: ClusterPlan) -> str:
    run = plan.runs[0].run
    replicas = 1 if len(plan.hosts) == 1 else 3
    version = ".".join(map(str, OLDEST_OF_CLUSTERS))
    servers = "\n".join(f"   {server_folder(out, host)}  ->  {host}" for host in plan.hosts)
    return f"""\
1. Copy each folder to its host, readable by its owner only:
{servers}
2. On each host, in the copied folder, start the server ({version} or newer; it keeps its data in {plan.store_dir}/ there):
   nats-server -c nats.conf
3. Once, with the administrator's key, create the streams of each run:
   millrace streams --config RECIPE bus_config.run={run} bus_config.replicas={replicas} \\
     "bus_config.url='{client_url(plan)}'" bus_config.ca_file={out / "ca.pem"} bus_config.keys={out / "keys" / run}
4. Give each node ca.pem and the keys of its own roles alone, as in {out / "keys" / run}/browser.seed for browsers, and start
   its roles with the same bus_config.run, url, ca_file and keys.
Keep {out} itself private and off the nodes: it holds the keys of every role and of the authority (ca.key)."""
