"""Addresses of servers as people write them: what is none is refused before anybody connects, and no password is repeated."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from bus.address import ServerAddress
from bus.address_file import Whereabouts
from bus.server.locate import address_for
from ops.cli import main
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError
from schemas.server_url import server_urls


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("nats://127.0.0.1:4222", ("nats://127.0.0.1:4222",)),
        ("localhost:4222", ("nats://localhost:4222",)),
        ("tls://cpu-1", ("tls://cpu-1",)),
        ("tls://[::1]:4222/", ("tls://[::1]:4222/",)),
        ("tls://a.lan:1, tls://b.lan:2,", ("tls://a.lan:1", "tls://b.lan:2")),
    ],
)
def test_servers_are_read(text: str, urls: tuple[str, ...]) -> None:
    assert server_urls(text) == urls
    assert BusConfig(url=text).url == text


@pytest.mark.parametrize(
    "wrong",
    [
        *("nats://a:99999", "nats://a:-1", "nats://a:abc", "nats://a:0", "nats://[::1", "nats://:4222", "nats://", ",", " "),
        *(
            "http://a:1",
            "TLS://a:1",
            "tls://a:1/x",
            "tls://a:1?b",
            "tls://a..b:1",
            "tls://a b:1",
            "tls://a:\n1",
            "tls://a,b:x",
        ),
    ],
)
def test_what_names_no_server_is_refused_wherever_it_is_read(wrong: str) -> None:
    for read in (server_urls, lambda url: BusConfig(url=url), lambda url: ServerAddress(url, nkey_seed="seed")):
        with pytest.raises(
            ConfigurationError, match=r"bus_config\.url has .*: write scheme, host and port of a server, as in"
        ):
            read(wrong)


@pytest.mark.parametrize(
    "url", ["nats://me:s3cret@127.0.0.1:4222", "tls://s3cret@a:4222", "nats://me:s3,cret@a:x", "s3cret@a"]
)
def test_a_user_or_a_password_is_refused_and_not_repeated(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "simulation", f"bus_config.url='{url}'"]) == 78
    shown = "".join(capsys.readouterr())
    assert "bus_config.keys, or a file in bus_config.credentials_file" in shown
    assert "s3" not in shown
    said = tmp_path / "server.json"
    said.write_bytes(msgspec.json.encode(Whereabouts(url=url, server_name="")))
    moving = replace(BusConfig(), url=f"file:{said}", ca_file="ca.pem")
    with pytest.raises(ConfigurationError) as refused:
        address_for(tmp_path, moving, "admin")
    assert "names a user or a password" in str(refused.value)
    assert "s3" not in str(refused.value)
