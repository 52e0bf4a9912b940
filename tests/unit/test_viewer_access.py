"""Who may read the web application: names, tokens, and addresses that are refused."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ops.web.access import TOKEN_VARIABLE, Access, host_names, read_token, require_safe
from schemas.errors import ConfigurationError

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize("header", ["127.0.0.1:8400", "localhost", "LOCALHOST:1", "[::1]:8400", "node-3:8400", "node-3.:1"])
def test_own_names(header: str) -> None:
    assert Access(hosts=host_names("0.0.0.0", ["Node-3"])).names(header)


@pytest.mark.parametrize(
    "header", ["", "evil.example:8400", "127.0.0.1.evil.example", "[::1", "localhost@evil.example", ":80"]
)
def test_other_names(header: str) -> None:
    assert not Access().names(header)


@pytest.mark.parametrize(
    ("authorization", "cookie", "expected"),
    [
        (f"Bearer {TOKEN}", "", True),
        (f"bearer  {TOKEN}", "", True),
        (f"Basic {TOKEN}", "", False),
        (f"Bearer {TOKEN}x", "", False),
        ("Bearer ", "", False),
        ("Bearer ümlaut", "", False),
        ("", "session", True),
        ("", TOKEN, False),
        ("", "", False),
    ],
)
def test_token_and_cookie(authorization: str, cookie: str, expected: bool) -> None:
    assert Access(token=TOKEN, session="session").knows(authorization, cookie) is expected


def test_without_a_token_nothing_is_asked_and_none_fits() -> None:
    assert Access().knows("", "")
    assert not Access().is_token("Bearer ")


def test_sessions_differ_and_secrets_are_not_shown() -> None:
    assert Access().session != Access().session
    assert TOKEN not in repr(Access(token=TOKEN))


@pytest.mark.parametrize(("host", "tls", "token"), [("0.0.0.0", True, ""), ("0.0.0.0", False, TOKEN), ("10.0.0.7", False, "")])
def test_beyond_loopback_needs_tls_and_a_token(host: str, tls: bool, token: str) -> None:
    with pytest.raises(ConfigurationError, match="--tls-cert"):
        require_safe(host, tls=tls, token=token)
    require_safe(host, tls=True, token=TOKEN)


@pytest.mark.parametrize(("environment", "expected"), [({}, ""), ({TOKEN_VARIABLE: f" {TOKEN}\n"}, TOKEN)])
def test_a_token_from_the_environment(environment: Mapping[str, str], expected: str) -> None:
    assert read_token(None, environment) == expected


def test_a_token_file_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        read_token(file, {})
    file.chmod(0o600)
    assert read_token(file, {}) == TOKEN
    file.write_text("short")
    with pytest.raises(ConfigurationError, match="openssl rand"):
        read_token(file, {})
    file.write_bytes(b"\xff" * 32)
    with pytest.raises(ConfigurationError, match="is not UTF-8 text"):
        read_token(file, {})
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_token(tmp_path / "none", {})
