"""The file that says where a server is: what its node writes, what others read, and what says nothing."""

from pathlib import Path

import pytest

from bus.address_file import Whereabouts, address_file, read_whereabouts, say_whereabouts
from bus.server.cluster_files import ClusterPlan, server_folder, write_cluster
from schemas.bus_config import BusConfig
from schemas.errors import BusUnavailable, ConfigurationError
from schemas.ids import RunName

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("url", ["", "tls://cpu-1:4222", "nats://127.0.0.1:4222", "cpu-1:4222"])
def test_the_url_of_a_server_names_no_file(url: str) -> None:
    assert address_file(url) is None


@pytest.mark.parametrize("url", ["file:/shared/server.json", "file:///shared/server.json"])
def test_a_url_may_name_a_file(url: str) -> None:
    named = address_file(url)
    assert named is not None
    assert named.resolve() == Path("/shared/server.json")
    with pytest.raises(ConfigurationError, match="write the whole path, as in file:/shared/mine/server"):
        address_file(url.replace("/shared", "shared").replace("//", ""))


async def test_what_is_said_is_where_the_written_server_listens_and_what_its_certificate_says(tmp_path: Path) -> None:
    plan = ClusterPlan(hosts=("cpu-1",), runs=(BusConfig(run=RunName("r")),), client_port=4333)
    await write_cluster(tmp_path / "cluster", plan)
    said, server = tmp_path / "shared" / "server.json", server_folder(tmp_path / "cluster", "cpu-1")
    for host in ("gpu-17", "gpu-3"):
        say_whereabouts(said, server, host)
        assert read_whereabouts(said) == Whereabouts(url=f"tls://{host}:4333", server_name="cpu-1")
    assert [path.name for path in said.parent.iterdir()] == ["server.json"]
    (server / "nats.conf").write_text("port: 4222\n")
    with pytest.raises(ConfigurationError, match="copy there what millrace cluster wrote"):
        say_whereabouts(said, server, "gpu-4")
    assert read_whereabouts(said).url == "tls://gpu-3:4333"


def test_what_says_nothing_is_told_from_what_says_something_else(tmp_path: Path) -> None:
    with pytest.raises(BusUnavailable, match=r"no server has said in .* where it is: start the node with the role server"):
        read_whereabouts(tmp_path / "server.json")
    for content in (b"", b"tls://cpu-1:4222", b'{"url": "tls://cpu-1:4222"}', b'{"url": 1, "server_name": "a"}', b"\xff"):
        (tmp_path / "server.json").write_bytes(content)
        with pytest.raises(ConfigurationError, match="its node writes it when it starts"):
            read_whereabouts(tmp_path / "server.json")
    with pytest.raises(ConfigurationError, match="Is a directory"):
        read_whereabouts(tmp_path)
