"""Three nodes with TLS, started by the node script only: one is cut off and comes back, then every worker is restarted.

    python -m benchmarks.three_nodes                # simulated browsers, policy and training: two minutes
    python -m benchmarks.three_nodes --quickstart   # the quickstart's recipe: real Chromium, vLLM and DeepSpeed
    python -m benchmarks.three_nodes --quickstart --two-trainers   # node 1 has a rank of the trainer, which is killed too

Each node is a network namespace with a folder of its own; the others' folders are hidden from it, so that versions travel
over the bus. A stand-in for ssh enters the namespace; everything else is `millrace cluster`, `launch`, `streams`, `restart`.
Three servers, one per node; browsers on nodes 1 and 2; feeder, policy, judge and trainer on node 3. Needs root.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import psutil
import yaml

from benchmarks.namespaces import Network, network
from benchmarks.report import RESULTS, Report
from benchmarks.three_nodes_material import Material, quickstart_material, simulated_material
from bus.jetstream import JetStreamBus
from bus.subjects import Subjects
from ops.audit.audit import Audit, audit
from ops.audit.ledger import Kind, read_ledger
from ops.config.loading import load_config
from ops.config.overrides import as_overrides
from ops.monitor.run_watch import Evaluation, RunState
from ops.processes.role_process import millrace_command, millrace_environment
from ops.quickstart.results import judgements_of
from ops.run.folder import RunFolder
from ops.run.joining import address_for, join, subjects_of
from ops.run.logs import quiet_logs
from ops.run.streams import create_streams
from schemas.config import Config
from schemas.errors import BusError
from schemas.messages import Heartbeat, Judgement, Split, Verdict

ROOT = Path(__file__).parents[1]
_RUN = "three-nodes"
_NODES = (1, 2, 3)
_UP_S = 120.0
_LIMIT_S = 1800.0
_LOOK_S = 0.5
_SSH = """#!/bin/sh
# Enters the namespace of the address, where the other nodes' folders are empty.
while [ "$1" != -- ]; do shift; done
export MINE="${2##*.}" COMMAND="$3"
exec ip netns exec "$DRILL_PREFIX-$MINE" sh -c '
    for folder in "$DRILL_ROOT"/node-*; do
        [ "$folder" = "$DRILL_ROOT/node-$MINE" ] || mount -t tmpfs -o size=4k none "$folder"
    done
    exec sh -c "$COMMAND"'
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One part of the drill."""

    part: str
    seconds: float
    judged: int
    """Training episodes in this part."""
    success: float
    """Share of these."""
    taken_over: int = 0
    """Episodes that were begun again by another worker in this part."""


class Drill:
    """The administrator's side, which stands outside the nodes."""

    def __init__(self, folder: Path, net: Network, material: Material, *, two_trainers: bool) -> None:
        self.folder = folder
        self.net = net
        self.material = material
        self.two_trainers = two_trainers
        self.cluster = folder / "cluster"
        self.nodes = folder / "nodes.yaml"
        self.rows: list[Row] = []
        hosts = [f"tls://{net.address(node)}:4222" for node in _NODES]
        self._url = ",".join(hosts)
        recipe = material.write_recipe(folder / "recipe.yaml", run=_RUN)
        mine = {
            "run": _RUN,
            "url": ",".join(hosts[1:]),  # not the one that is cut off
            "ca_file": str(self.cluster / "ca.pem"),
            "keys": str(self.cluster / "keys" / _RUN),
        }
        self.config: Config = load_config(recipe, as_overrides({f"bus_config.{key}": value for key, value in mine.items()}))
        self._seen: set[str] = set()
        self._times: list[tuple[float, float]] = []
        """When each row's part began and ended, in unix seconds."""

    @property
    def subjects(self) -> Subjects:
        return subjects_of(self.config)

    def write(self) -> None:
        """The cluster's files, the node file, and each node's own material."""
        servers = [word for node in _NODES for word in ("--server", self.net.address(node))]
        self.command("cluster", "--out", str(self.cluster), "--run", _RUN, *servers)
        here = f"{self.folder}/node-{{node}}"
        roles: dict[int, dict[str, object]] = {1: {"browser": 1}, 2: {"browser": 1}, 3: self.material.roles(self.own(3))}
        if self.two_trainers:
            roles[1]["trainer"] = 1
        content = {
            "run": _RUN,
            "trainer_network": f"{self.net.address(0)}/24",
            "config": "recipe.yaml",
            "url": self._url,
            "ca_file": f"{here}/ca.pem",
            "keys": f"{here}/keys",
            "server": f"{here}/server",
            "folder": f"{here}/run",
            "source": str(ROOT),
            "venv": sys.prefix,
            "nodes": {str(n): {"address": self.net.address(n), "roles": {"server": 1, **roles[n]}} for n in reversed(_NODES)},
        }
        self.nodes.write_text(yaml.safe_dump(content, sort_keys=False))
        for node in _NODES:
            self.own(node).mkdir(parents=True)
        self.material.place(self.own(3))

    def own(self, node: int) -> Path:
        return self.folder / f"node-{node}" / "run"

    def command(self, *arguments: str) -> str:
        """Output of a `millrace` command. Raises `RuntimeError` when it fails."""
        stand_in = self.folder / "bin"
        environment = {
            **millrace_environment(),
            "PATH": f"{stand_in}:{os.environ['PATH']}",
            "DRILL_PREFIX": self.net.prefix,
            "DRILL_ROOT": str(self.folder),
        }
        done = subprocess.run(
            millrace_command(arguments), capture_output=True, text=True, check=False, env=environment, timeout=_LIMIT_S
        )
        if done.returncode != 0:
            raise RuntimeError(f"millrace {' '.join(arguments[:3])} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    @contextmanager
    def launched(self) -> Iterator[None]:
        script = self.folder / "bin" / "ssh"
        script.parent.mkdir()
        script.write_text(_SSH)
        script.chmod(0o755)
        over = ("launch", "--file", str(self.nodes), "--with", "ssh", "--cluster", str(self.cluster), "--no-setup")
        try:
            self.command(*over)
            yield
        finally:
            self.command(*over, "--stop")

    @asynccontextmanager
    async def administered(self) -> AsyncIterator[JetStreamBus]:
        """Creates the streams as soon as the servers have a leader."""
        own = RunFolder(self.folder / "administrator")
        address = address_for(own, self.config.bus_config, "admin")
        with anyio.fail_after(_UP_S):
            while True:
                try:
                    await create_streams(address, self.config.bus_config)
                    break
                except BusError:
                    await anyio.sleep(_LOOK_S)
        async with join(own, self.config, role="admin", name="drill") as bus:
            yield bus

    # parts ------------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def part(self, bus: JetStreamBus, name: str) -> AsyncIterator[None]:
        began = time.time()
        yield
        ended = time.time()
        filter_ = self.subjects.judgements(Split.TRAIN)
        found = {record.subject: record.message for record in await bus.history(self.subjects.judged, filter_)}
        judged = [one for subject, one in found.items() if subject not in self._seen and isinstance(one, Judgement)]
        self._seen |= set(found)
        row = Row(
            part=name,
            seconds=ended - began,
            judged=len(judged),
            success=sum(one.verdict is Verdict.SUCCESS for one in judged) / max(len(judged), 1),
        )
        self.rows.append(row)
        self._times.append((began, ended))
        print(row, flush=True)

    async def count_takeovers(self, bus: JetStreamBus) -> None:
        """Fills in the rows, from the times at which the server stored the beginnings."""
        ledger = await read_ledger(bus, self.subjects)
        links = [link for chain in ledger.chains.values() for link in chain]
        again = [link.time_s for link in links if link.kind is Kind.START and link.attempt > 1]
        counts = [sum(began <= at < ended for at in again) for began, ended in self._times]
        self.rows = [replace(row, taken_over=count) for row, count in zip(self.rows, counts, strict=True)]

    async def wait_judged(self, bus: JetStreamBus, count: int) -> None:
        async with bus.tail(self.subjects.judged, self.subjects.judgements(Split.TRAIN)) as records:
            for _ in range(count):
                await anext(records)

    async def kill_rank(self, bus: JetStreamBus) -> None:
        """Rank 1, on node 1. Returns when the next version is announced."""
        async with bus.tail(self.subjects.checkpoints, self.subjects.everything("checkpoint"), only_new=True) as records:
            for process in psutil.process_iter():
                with suppress(psutil.Error):
                    given = process.environ()
                    if given.get("RANK") == "1" and given.get("MASTER_ADDR") == self.net.address(3):
                        process.kill()
                        print(f"killed rank 1, process {process.pid}", flush=True)
            await anext(records)

    async def wait_back(self, bus: JetStreamBus, worker: str) -> None:
        """Returns at the next heartbeat of the worker."""
        async with bus.tail(self.subjects.heartbeats, self.subjects.everything("heartbeat"), only_new=True) as beats:
            async for record in beats:
                if isinstance(record.message, Heartbeat) and record.message.worker == worker:
                    return

    async def wait_end(self, bus: JetStreamBus) -> Audit:
        """Every version is published, the last one is evaluated like the first, and everything that was admitted is judged."""
        wanted = self.config.feeder_config.num_iterations + 1
        async with bus.tail(self.subjects.checkpoints, self.subjects.everything("checkpoint")) as records:
            for _ in range(wanted):
                await anext(records)
        found = await audit(bus, self.config)
        with anyio.move_on_after(_UP_S):
            while not (found.holds and await self._is_evaluated(bus)):
                await anyio.sleep(2.0)
                found = await audit(bus, self.config)
        return found

    async def _is_evaluated(self, bus: JetStreamBus) -> bool:
        evaluations = await self.evaluations(bus)
        last = evaluations.get(self.config.feeder_config.num_iterations)
        return not self.config.feeder_config.evaluate_last or (
            last is not None and last.num_judged == evaluations[0].num_judged
        )

    async def evaluations(self, bus: JetStreamBus) -> dict[int, Evaluation]:
        """The evaluation rounds by policy version."""
        state = RunState()
        for judgement in await judgements_of(bus, self.subjects, self.config.bus_config.trained_rubric, Split.EVAL):
            state.apply(judgement, 0.0)
        return dict(sorted(state.evaluations.items()))

    async def restart_all(self) -> None:
        arguments = ("restart", "--all", "--file", str(self.nodes), "--cluster", str(self.cluster))
        print(await anyio.to_thread.run_sync(lambda: self.command(*arguments)), flush=True)


async def run(drill: Drill, cut_s: float) -> tuple[Audit, dict[int, Evaluation]]:
    async with drill.administered() as bus:
        swing = drill.material.swing
        with anyio.fail_after(_LIMIT_S):
            async with drill.part(bus, "start"):
                await drill.wait_judged(bus, swing)
            if drill.two_trainers:
                async with drill.part(bus, "the trainer's rank on node 1 killed, until the next version"):
                    await drill.kill_rank(bus)
            async with drill.part(bus, f"node 1 cut off for {cut_s:g} s"):
                drill.net.cut(1)
                await anyio.sleep(cut_s)
                drill.net.mend(1)
            async with drill.part(bus, "until its browser is heard again"):
                await drill.wait_back(bus, "1-browser-1")
            async with drill.part(bus, "rolling restart of all workers"):
                await drill.restart_all()
            async with drill.part(bus, "to the end"):
                found = await drill.wait_end(bus)
            await drill.count_takeovers(bus)
            return found, await drill.evaluations(bus)


def publish(drill: Drill, found: Audit, evaluations: Mapping[int, Evaluation], out: Path) -> None:
    findings = found.findings
    lost = len(findings.unfinished) + len(findings.unpublished) + len(findings.unjudged)
    holds = "every promise holds" if found.holds else "a promise was broken"
    rounds = [f"version {version}: {one.num_successes} of {one.num_scored}" for version, one in evaluations.items()]
    Report(
        name=f"three_nodes_{drill.material.name}{'_two_trainers' * drill.two_trainers}",
        title=f"Three nodes over TLS, {drill.material.name}{', two of them with the trainer' * drill.two_trainers}",
        rows=drill.rows,
        notes=(
            f"audit: {findings.num_tasks} tasks, {lost} lost, {findings.num_duplicates} counted twice: {holds}",
            f"held-out tasks solved: {', '.join(rounds) or 'no evaluation round'}",
            "taken over: begun again by another worker in this part, because a lease had passed",
        ),
    ).publish(out)


@quiet_logs()
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quickstart", action="store_true", help="real parts and the quickstart's recipe")
    parser.add_argument("--two-trainers", action="store_true", help="with --quickstart: a rank on node 1, another on node 3")
    parser.add_argument("--versions", type=int, help="to train (default: that of the recipe)")
    parser.add_argument("--cut", type=float, default=30.0, help="seconds for which node 1 is cut off (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    if options.two_trainers and not options.quickstart:
        parser.error("--two-trainers: simulated training has one process; write --quickstart too")
    with tempfile.TemporaryDirectory(prefix="three-nodes-") as name, network(len(_NODES)) as net:
        folder = Path(name)
        make = quickstart_material if options.quickstart else simulated_material
        drill = Drill(folder, net, make(folder / "material", options.versions), two_trainers=options.two_trainers)
        drill.write()
        with drill.launched():
            found, evaluations = anyio.run(run, drill, options.cut, backend_options={"use_uvloop": True})
    publish(drill, found, evaluations, options.out)
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
