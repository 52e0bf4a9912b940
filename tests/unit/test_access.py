"""The permissions as values: what is granted to nobody, and what a person is told who lacks a key."""

from dataclasses import replace
from pathlib import Path

import pytest

from bus.access import Access, covers, grants
from bus.permissions import SERVING
from bus.server.accounts import access_of, accounts_text
from bus.server.cluster_files import server_folder
from bus.server.keys import KeyRing
from bus.subjects import Subjects
from ops.cli import main
from ops.run.folder import RunFolder
from ops.run.joining import address_for, runs_of
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError
from schemas.ids import RunName
from tests.support.bus.permissions import CONFIG, PAGE, ROLES, markdown

SUBJECTS = Subjects(CONFIG.run, CONFIG.num_shards)


def test_the_page_of_permissions_is_up_to_date() -> None:
    assert PAGE.read_text() == markdown(), "python -m tests.support.bus.permissions"


@pytest.mark.parametrize("role", ROLES)
def test_no_role_reaches_beyond_its_run_or_administers(role: Access) -> None:
    grant = grants(SUBJECTS, CONFIG, role, CONFIG.rubrics)
    ours = ("r.", "$JS.API.INFO", "$JS.ACK.r_", "$SRV.", f"_INBOX_{role}.", "$JS.EVENT.ADVISORY.CONSUMER.")
    asked_alone = {
        Access.TRAINER: ("STREAM.PURGE.r_WEIGHTS", "STREAM.MSG.GET.r_CHECKPOINTS"),
        Access.FEEDER: ("STREAM.MSG.GET.r_FEEDING",),
        Access.CONSUMER: ("STREAM.MSG.GET.r_POSITIONS",),
        Access.ARCHIVER: ("STREAM.MSG.GET.r_POSITIONS",),
        Access.BROWSER: ("STREAM.PURGE.r_STEPS", "STREAM.PURGE.r_TURNS"),
        # The account of a run holds no other run's streams.
        Access.MONITOR: ("STREAM.LIST", "STREAM.NAMES", "CONSUMER.LIST.r_", "CONSUMER.NAMES.r_"),
    }
    own = asked_alone.get(role, ())
    asked = ("STREAM.INFO.r_", "DIRECT.GET.r_", "CONSUMER.INFO.r_", "CONSUMER.MSG.NEXT.r_", *own)
    for subject in grant.publish:
        assert subject.startswith(ours[:4]) or subject.removeprefix("$JS.API.").startswith(asked), subject
    for subject in grant.subscribe:
        assert subject.startswith((ours[0], *ours[3:])), subject


def test_only_the_policy_answers_other_roles_and_no_role_tells_another_to_leave() -> None:
    granted = {role: grants(SUBJECTS, CONFIG, role, CONFIG.rubrics) for role in ROLES}
    answers = {subject: role for role, grant in granted.items() for subject in grant.answers if subject.startswith("r.")}
    assert answers.pop("r.wake.*") is Access.POLICY
    assert answers == {f"r.control.{role}.*": role for role in SERVING}
    assert not [subject for grant in granted.values() for subject in grant.publish if subject.startswith("r.control.")]
    assert [role for role, grant in granted.items() if "$SRV.PING" in grant.publish] == [Access.MONITOR]


@pytest.mark.parametrize(
    ("pattern", "subject", "covered"),
    [
        ("r.ep.>", "r.ep.1.e.task", True),
        ("r.ep.>", "r.ep.*.*.done", True),
        ("r.ep.>", "r.ep", False),
        ("r.ep.*", "r.ep.>", False),
        ("r.ep.>", "r.ep.>", True),
        ("r.*.x", "r.a.x", True),
        ("r.*.x", "r.a.y", False),
        ("r.ep.1.>", "r.ep.*.e.task", False),
    ],
)
def test_a_pattern_covers_what_it_stands_for(pattern: str, subject: str, covered: bool) -> None:
    assert covers(pattern, subject) is covered


def test_a_role_without_a_key_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="no key for the role 'server'"):
        Access.named("server")


def test_a_node_needs_the_keys_of_its_own_roles_only(tmp_path: Path) -> None:
    KeyRing(tmp_path).make(CONFIG.run)
    keys = tmp_path / CONFIG.run
    for other in ROLES:
        if other is not Access.BROWSER:
            (keys / f"{other}.seed").unlink()
    bus = BusConfig(run=CONFIG.run, url="tls://nats.example.org:4222", keys=str(keys), ca_file=str(tmp_path / "ca.pem"))
    address = address_for(RunFolder(tmp_path), bus, "browser")
    assert (address.inbox_prefix, address.ca_file) == ("_INBOX_browser", tmp_path / "ca.pem")
    with pytest.raises(ConfigurationError, match=r"copy r/judge\.seed"):
        address_for(RunFolder(tmp_path), bus, "judge")


def test_a_file_that_names_the_server_needs_certificates_that_vouch_for_it(tmp_path: Path) -> None:
    """Any server with a certificate that the machine trusts could be named there."""
    KeyRing(tmp_path).make(CONFIG.run)
    said = tmp_path / "server.json"
    said.write_text('{"url": "tls://elsewhere.example.org:4222", "server_name": "elsewhere.example.org"}')
    bus = BusConfig(run=CONFIG.run, url=f"file:{said}", keys=str(tmp_path / CONFIG.run))
    with pytest.raises(ConfigurationError, match=r"write in bus_config\.ca_file the certificates that vouch for yours"):
        address_for(RunFolder(tmp_path), bus, "browser")
    address = address_for(RunFolder(tmp_path), replace(bus, ca_file=str(tmp_path / "ca.pem")), "browser")
    assert (address.url, address.server_name) == ("tls://elsewhere.example.org:4222", "elsewhere.example.org")


def test_guest_runs_share_everything_but_the_name() -> None:
    guest = RunName("guest")
    first, second = runs_of(BusConfig(run=CONFIG.run, num_shards=2, guest_runs=(guest,)))
    assert (first.run, second.run, second.num_shards) == (CONFIG.run, guest, 2)


def test_the_command_writes_a_cluster_and_names_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = ("nats-1", "nats-2", "nats-3")
    servers = [argument for host in hosts for argument in ("--server", host)]
    out = tmp_path / "cluster"
    assert main(["cluster", "--out", str(out), *servers, "--run", "a", "--run", "b", "bus_config.num_shards=2"]) == 0
    printed = capsys.readouterr().out
    assert "tls://nats-1:4222,tls://nats-2:4222,tls://nats-3:4222" in printed
    secrets = [path.read_text().strip() for path in out.rglob("*.seed")] + [(out / "keys" / "route.password").read_text()]
    assert len(secrets) == 2 * len(Access) + 2
    texts = [(server_folder(out, host) / "nats.conf").read_text() for host in hosts]
    for secret in secrets[:-1]:
        assert not any(secret in text for text in (printed, *texts))
    assert secrets[-1] not in printed
    assert all("a_EPISODES1" in text and "b_EPISODES1" in text for text in texts)


def test_two_servers_are_refused_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "--out", str(tmp_path / "c"), "--server", "a", "--server", "b"]) == 78
    assert "no majority" in capsys.readouterr().err


def test_the_server_forgets_requests_that_are_answered_in_parts_after_seconds(tmp_path: Path) -> None:
    """It cannot tell their last answer, and would keep 10,000 reads a second for two minutes: gigabytes."""
    keys = KeyRing(tmp_path)
    keys.make(CONFIG.run)
    exports = [line for line in accounts_text(access_of(CONFIG, keys)) if "service:" in line and "account:" not in line]
    in_parts = [line for line in exports if "response_type: stream" in line and "$SRV." not in line]
    assert all("response_type: stream" in line for line in exports if "$SRV." in line)
    assert {("DIRECT.GET" in line, "MSG.NEXT" in line) for line in in_parts} == {(True, False), (False, True)}
    assert all("response_threshold" in line for line in in_parts)
