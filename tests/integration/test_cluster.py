"""Generated configuration: servers accept it, three of them make a cluster with TLS, and strangers are kept out."""

import datetime
import errno
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from bus.access import Access
from bus.address import ServerAddress
from bus.jetstream import connect
from bus.jetstream.administration import Applied
from bus.jetstream.retrying import RetryLimits
from bus.ports import Expect
from bus.server import certificates, nats_server
from bus.server.certificates import Authority
from bus.server.cluster_files import ClusterPlan, client_url, server_folder, write_cluster
from bus.server.keys import write_private
from bus.server.local_cluster import ClusterServer, LocalCluster, local_cluster
from bus.server.text import LOOPBACK, ServerSettings
from bus.server_binary import find_binary
from bus.subjects import Subjects
from bus.topology import shared_queues, streams
from ops.commands.streams import apply
from ops.run.folder import RunFolder
from ops.run.joining import address_for
from ops.run.streams import create_streams
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.errors import BusError, BusUnavailable, ConfigurationError
from schemas.ids import PolicyVersion, RunName
from schemas.messages import Checkpoint
from tests.deadlines import HANGS_S

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
T = TypeVar("T")
CONFIG = BusConfig(run=RunName("r"), replicas=3)
PATIENT = replace(CONFIG, request_timeout_s=HANGS_S)
OTHER = BusConfig(run=RunName("other"), replicas=3)
SUBJECTS = Subjects(CONFIG.run)
HOSTS = ("nats-1.example.org", "nats-2.example.org", "10.0.0.3")


@pytest.fixture(autouse=True)
def elections_may_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bus.jetstream.bus._HELLO", RetryLimits(attempt_s=5.0, total_s=HANGS_S))


def checkpoint(version: int) -> Checkpoint:
    return Checkpoint(
        run=CONFIG.run, version=PolicyVersion(version), uri="file:///c", files=(), parent=None, trainer_step=0, judged_seq=0
    )


async def write(cluster: LocalCluster, version: int) -> int:
    async with connect(cluster.address(role="trainer"), SUBJECTS, PATIENT, name="trainer") as bus:
        subject = SUBJECTS.checkpoint(PolicyVersion(version))
        return await bus.append(SUBJECTS.checkpoints, subject, checkpoint(version), expect=Expect(subject, 0))


async def repeated(attempt: Callable[[], Awaitable[T | None]]) -> T:
    """What comes of it once there is a leader again."""
    with anyio.fail_after(HANGS_S):
        while True:
            with suppress(BusError):
                if (found := await attempt()) is not None:
                    return found
            await anyio.sleep(0.1)


async def leader_of(cluster: LocalCluster, stream: str) -> ClusterServer:
    return await repeated(lambda: cluster.leader_of(stream))


async def created(cluster: LocalCluster, config: BusConfig) -> tuple[Applied, ...]:
    return await repeated(lambda: create_streams(cluster.address(), config))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("hosts", [HOSTS[:1], HOSTS])
async def test_a_server_accepts_what_is_written_for_it(hosts: tuple[str, ...], tmp_path: Path) -> None:
    binary = await find_binary()
    plan = ClusterPlan(hosts=hosts, runs=(CONFIG, OTHER), sync_interval="always")
    await write_cluster(tmp_path, plan)
    first = contents(tmp_path)
    for host in hosts:
        folder = server_folder(tmp_path, host)
        done = await anyio.run_process([str(binary.path), "-t", "-c", "nats.conf"], cwd=folder, check=False)
        assert done.returncode == 0, done.stderr
        text = (folder / "nats.conf").read_text()
        assert f'http: "{LOOPBACK}:8222"' in text
        assert 'sync_interval: "always"' in text
        assert text.count("tls {") == (2 if len(hosts) > 1 else 1)
        assert ("ping_interval" in text) is (len(hosts) > 1), "one that is cut off is to be noticed by the others"
        for name in ("nats.conf", "server.key"):
            assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    await write_cluster(tmp_path, plan)
    assert contents(tmp_path) == first


@pytest.mark.parametrize("at", ["server.key", "ca.pem", "server.pem"])
async def test_a_folder_whose_writing_was_cut_off_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    plan, folder = ClusterPlan(hosts=HOSTS[:1], runs=(CONFIG,)), server_folder(tmp_path, HOSTS[0])

    def cut_off(path: Path, content: bytes) -> None:
        if path == folder / at:
            raise OSError(errno.EIO, "cut off")
        write_private(path, content)

    with monkeypatch.context() as power:
        power.setattr(certificates, "write_private", cut_off)
        with pytest.raises(ConfigurationError, match="cut off"):
            await write_cluster(tmp_path, plan)
    await write_cluster(tmp_path, plan)
    assert {path.name for path in folder.iterdir()} == {"ca.pem", "nats.conf", "server.key", "server.pem"}
    certificate = x509.load_pem_x509_certificate((folder / "server.pem").read_bytes())
    key = serialization.load_pem_private_key((folder / "server.key").read_bytes(), password=None)
    assert certificate.public_key() == key.public_key()


async def test_plans_that_make_no_cluster_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no majority"):
        ClusterPlan(hosts=HOSTS[:2], runs=(CONFIG,))
    with pytest.raises(ConfigurationError, match="a different one"):
        ClusterPlan(hosts=(HOSTS[0],) * 3, runs=(CONFIG,))
    with pytest.raises(ConfigurationError, match="no host name"):
        ClusterPlan(hosts=("tls://a:4222",), runs=(CONFIG,))
    await write_cluster(tmp_path, ClusterPlan(hosts=HOSTS, runs=(CONFIG, OTHER)))
    with pytest.raises(ConfigurationError, match="add --run other"):
        await write_cluster(tmp_path, ClusterPlan(hosts=HOSTS, runs=(CONFIG,)))


def test_nothing_leaves_loopback_without_tls_and_credentials() -> None:
    with pytest.raises(ConfigurationError, match=r"a server on 0\.0\.0\.0 needs TLS"):
        ServerSettings(
            name="s",
            host="0.0.0.0",
            port=1,
            monitor_port=2,
            store_dir="j",
            max_payload_bytes=1,
            sync_interval="2m",
            version=(2, 15),
        )
    with pytest.raises(ConfigurationError, match=r"write tls://nats\.example\.org:4222"):
        ServerAddress("nats://nats.example.org:4222", nkey_seed="seed")
    with pytest.raises(ConfigurationError, match=r"bus_config\.keys"):
        ServerAddress("tls://nats.example.org:4222")
    with pytest.raises(ConfigurationError, match="not encrypted"):
        ServerAddress("nats://127.0.0.1:4222,10.0.0.3:4222", nkey_seed="seed")
    url = client_url(ClusterPlan(hosts=HOSTS, runs=(CONFIG,)))
    assert ServerAddress(url, nkey_seed="seed").urls[2] == "tls://10.0.0.3:4222"


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LocalCluster]:
    async with local_cluster(tmp_path / "cluster", (CONFIG,), tls=request.param) as servers:
        await created(servers, CONFIG)
        yield servers


async def test_a_cluster_loses_its_leader_and_nothing_else(cluster: LocalCluster) -> None:
    assert await write(cluster, 0) == 1
    leader = await leader_of(cluster, SUBJECTS.checkpoints)
    await leader.kill()
    assert not leader.is_up
    assert await write(cluster, 1) == 2
    assert await leader_of(cluster, SUBJECTS.checkpoints) is not leader
    await leader.start()
    async with connect(cluster.address(role="monitor"), SUBJECTS, PATIENT, name="monitor") as bus:
        stored = await bus.history(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
    assert [record.seq for record in stored] == [1, 2]
    assert {item.outcome for item in await created(cluster, CONFIG)} == {"unchanged"}


async def test_the_newest_version_is_asked_of_the_leader_by_whoever_decides(cluster: LocalCluster) -> None:
    """By the trainer's own key; while there is no leader, none of the others answers for it."""
    await write(cluster, 0)
    async with connect(cluster.address(role="trainer"), SUBJECTS, PATIENT, name="trainer") as bus:
        leader = await leader_of(cluster, SUBJECTS.checkpoints)
        await leader.kill()
        newest = await bus.confirmed_last(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
        assert newest is not None
        assert newest.message == checkpoint(0)
        assert await leader_of(cluster, SUBJECTS.checkpoints) is not leader
        assert await bus.confirmed_last(SUBJECTS.checkpoints, SUBJECTS.checkpoint(PolicyVersion(7))) is None


async def test_every_shard_is_led_by_another_server(tmp_path: Path) -> None:
    sharded = replace(CONFIG, num_shards=3)
    names = Subjects(CONFIG.run, sharded.num_shards)
    async with local_cluster(tmp_path / "cluster", (sharded,)) as cluster:
        with anyio.fail_after(HANGS_S):
            while True:
                # Where leaders are being elected it comes to be so when the step is repeated.
                await created(cluster, sharded)
                leaders = [await leader_of(cluster, names.episodes(shard)) for shard in range(3)]
                if set(leaders) == set(cluster.servers):
                    break


async def test_the_command_creates_streams_changes_them_and_leaves_them_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(tmp_path)
    config = Config(bus_config=BusConfig(run=CONFIG.run))
    longer = Config(bus_config=BusConfig(run=CONFIG.run, results_max_age_s=60 * 86400.0))
    num_made = len(streams(SUBJECTS, config.bus_config)) + len(shared_queues(SUBJECTS, config.bus_config, ("environment_v1",)))
    async with nats_server(folder.server, (config.bus_config,)):
        counts = []
        for wanted in (config, config, longer):
            assert await apply(folder, wanted) == 0
            printed = [line.split()[-1] for line in capsys.readouterr().out.splitlines() if " r_" in f" {line}"]
            counts.append({outcome: printed.count(outcome) for outcome in ("created", "changed", "unchanged")})
    assert counts == [
        {"created": num_made, "changed": 0, "unchanged": 0},
        {"created": 0, "changed": 0, "unchanged": num_made},
        {"created": 0, "changed": 3, "unchanged": num_made - 3},
    ]


async def test_strangers_find_no_way_into_an_encrypted_server(tmp_path: Path) -> None:
    async with local_cluster(tmp_path / "cluster", (BusConfig(run=CONFIG.run),), num_servers=1, tls=True) as cluster:
        ours = cluster.address(role="judge")
        Authority.of(tmp_path, datetime.datetime.now(datetime.UTC))
        await distrusted(replace(ours, ca_file=tmp_path / "ca.pem"))
        await distrusted(replace(ours, ca_file=None))
        with pytest.raises(ConfigurationError, match="cannot be read"):
            await hello(replace(ours, ca_file=tmp_path / "none.pem"))
        with pytest.raises(BusUnavailable, match="no NATS server answers"):
            await hello(replace(ours, url=ours.url.replace("tls://", "nats://")))
        await hello(ours)
        keys, ca_file = str(cluster.folder / "keys" / CONFIG.run), str(cluster.ca_file)
        joining = replace(CONFIG, url=ours.url, keys=keys, ca_file=ca_file)
        assert address_for(RunFolder(tmp_path), joining, "judge") == ours
    async with local_cluster(tmp_path / "bare", (BusConfig(run=CONFIG.run),), num_servers=1) as bare:
        url = bare.address().url.replace("nats://", "tls://")
        with pytest.raises(BusUnavailable):
            await hello(replace(bare.address(), url=url, ca_file=cluster.ca_file))


async def test_a_server_that_comes_back_without_encryption_is_told_nothing(tmp_path: Path) -> None:
    config = BusConfig(run=CONFIG.run, request_timeout_s=1.0)
    async with local_cluster(tmp_path, (config,), num_servers=1, tls=True) as cluster:
        server = cluster.servers[0]
        await created(cluster, config)
        async with connect(cluster.address(role="monitor"), SUBJECTS, config, name="monitor") as bus:
            assert await repeated(lambda: bus.last_seq(SUBJECTS.checkpoints)) == 0
            await server.stop()
            text = (server.folder / "nats.conf").read_text()
            bare = "\n".join(line for line in text.splitlines() if not line.startswith("tls {"))
            assert bare != text
            (server.folder / "nats.conf").write_text(bare)
            await server.launch()
            with pytest.raises(BusUnavailable):
                await bus.last_seq(SUBJECTS.checkpoints)
            await server.stop()
            (server.folder / "nats.conf").write_text(text)
            await server.start()
            assert await repeated(lambda: bus.last_seq(SUBJECTS.checkpoints)) == 0


async def distrusted(address: ServerAddress) -> None:
    """Only the newest reason is said: of a server that was too late with its greeting, something else."""
    with anyio.fail_after(HANGS_S):
        while True:
            with pytest.raises(BusUnavailable) as refused:
                await hello(address)
            if "certificate verify failed" in str(refused.value):
                return


async def hello(address: ServerAddress) -> None:
    with anyio.fail_after(HANGS_S):
        async with connect(address, SUBJECTS, CONFIG, name=Access.JUDGE):
            pass
