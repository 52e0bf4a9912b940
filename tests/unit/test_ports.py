"""Ports that servers listen on are none that the system gives to clients."""

import socket
from pathlib import Path

import pytest

from bus.server import ports
from bus.server.ports import free_ports, held_port, is_free


def free_port(address: str = "127.0.0.1") -> int:
    return free_ports(1, address)[0]


def test_no_client_is_given_a_servers_port_while_the_server_is_away() -> None:
    first, _ = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    drawn = [free_port() for _ in range(200)]
    assert max(drawn) < first
    assert sum(map(is_free, drawn)) > 190, "other programs take some meanwhile"
    assert len(set(drawn)) > 190, "two that draw at one time draw apart"


def test_a_port_that_is_listened_on_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", free_port()))
        taken.listen()
        port = taken.getsockname()[1]
        assert not is_free(port)
        monkeypatch.setattr(ports, "_FIRST", port)
        monkeypatch.setattr(ports, "_first_ephemeral", lambda: port + 1)
        assert free_port() != port


def test_what_is_drawn_is_free_at_the_address_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = "127.0.0.3", "127.0.0.2"
    with socket.socket() as taken:
        taken.bind((there, port := free_port(there)))
        taken.listen()
        assert (is_free(port, here), is_free(port, there)) == (True, False)
        monkeypatch.setattr(ports, "_FIRST", port)
        monkeypatch.setattr(ports, "_first_ephemeral", lambda: port + 1)
        assert (free_port(here), free_port(there) == port) == (port, False)


@pytest.mark.parametrize("said", ["", "no numbers", "1024 65000"])
def test_where_the_system_keeps_no_room_any_free_port_will_do(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "_EPHEMERAL", tmp_path / "range")
    if said:
        (tmp_path / "range").write_text(said)
    assert is_free(free_port())


def test_the_ports_of_one_server_are_different_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_FIRST", 20_000)
    monkeypatch.setattr(ports, "_first_ephemeral", lambda: 20_008)
    assert len(set(free_ports(8))) == 8


def test_a_port_that_is_held_is_drawn_by_nobody_and_is_listened_on_late_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with held_port() as port:
        monkeypatch.setattr(ports, "_FIRST", port)
        monkeypatch.setattr(ports, "_first_ephemeral", lambda: port + 1)
        for _ in range(2):
            assert free_port() != port
            assert is_free(port)
            with socket.create_server(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port)):
                assert not is_free(port)
