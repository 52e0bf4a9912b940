"""Every role's key tries everything, on a real server: the outcome is that of the table, cell by cell."""

import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from nats.aio.client import Client

from bus.access import Access
from bus.address import ServerAddress, inbox_of
from bus.jetstream import connect
from bus.jetstream.api import STREAM_NOT_FOUND, ApiError, Response, ask
from bus.jetstream.calls import NoResponder
from bus.jetstream.link import _REMEMBERED, Link, open_link
from bus.ports import Offered
from bus.server import address_of, nats_server
from bus.server.keys import KeyRing, read_seed
from bus.subjects import Subjects
from ops.run.streams import create_streams
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError, NotPermitted
from schemas.ids import PolicyVersion, RunName, WorkerId
from schemas.messages import Heartbeat, Role, StepWake
from tests.builders import task
from tests.deadlines import HANGS_S
from tests.support.bus.permissions import CONFIG, OPERATIONS, ROLES, Operation
from tests.support.polling import until

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
OTHER = replace(CONFIG, run=RunName("other"))
SUBJECTS = Subjects(CONFIG.run, CONFIG.num_shards)


@asynccontextmanager
async def served(folder: Path, *runs: BusConfig) -> AsyncIterator[None]:
    async with nats_server(folder, runs or (CONFIG,)):
        for run in runs or (CONFIG,):
            await create_streams(address_of(folder, run=run.run), run)
        yield


class Prober:
    """A bare client that learns from the server's own words whether it was let through."""

    def __init__(self) -> None:
        self._client = Client()
        self._refusals: list[str] = []

    async def connect(self, address: ServerAddress) -> None:
        async def note(error: Exception) -> None:
            self._refusals.append(str(error))

        await self._client.connect(
            address.url, nkeys_seed_str=address.nkey_seed, error_cb=note, allow_reconnect=False, connect_timeout=int(HANGS_S)
        )

    async def may(self, operation: Operation, reply: str) -> bool:
        """The server complains before it answers the flush."""
        self._refusals.clear()
        if operation.verb == "publish":
            await self._client.publish(operation.subject, b"{}", reply=reply)
        else:
            heard = await self._client.subscribe(operation.subject)
            await heard.unsubscribe()
        for _ in range(2):  # the library's ping may overtake what it follows
            await self._client.flush(timeout=int(HANGS_S))
        assert all("permissions violation" in refusal for refusal in self._refusals), self._refusals
        return not self._refusals

    async def close(self) -> None:
        await self._client.close()


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_can_do_what_the_table_says_and_nothing_else(role: Access, tmp_path: Path) -> None:
    async with served(tmp_path):
        prober = Prober()
        await prober.connect(address_of(tmp_path, role=role))
        wrong = [
            f"{operation.what} ({operation.subject}): {'allowed' if allowed else 'refused'}"
            for operation in OPERATIONS
            if (allowed := await prober.may(operation, f"{inbox_of(role)}.probe")) != (role in operation.allowed)
        ]
        await prober.close()
    assert not wrong


async def test_the_administrator_creates_streams_and_what_a_role_tried_has_changed_nothing(tmp_path: Path) -> None:
    async with served(tmp_path):
        for role in ROLES:
            async with open_link(address_of(tmp_path, role=role), role) as link:
                for verb in (f"STREAM.DELETE.{SUBJECTS.judged}", f"STREAM.PURGE.{SUBJECTS.judged}"):
                    with pytest.raises(NotPermitted, match=f"key of {role}"):
                        await ask(link, verb, None, Response, timeout_s=HANGS_S)
        assert {item.outcome for item in await create_streams(address_of(tmp_path), CONFIG)} == {"unchanged"}


async def test_another_run_s_keys_can_do_nothing_here(tmp_path: Path) -> None:
    async with served(tmp_path, CONFIG, OTHER):
        theirs = address_of(tmp_path, run=OTHER.run)
        async with (
            connect(address_of(tmp_path), SUBJECTS, CONFIG, name="ours") as ours,
            ours.listen(f"{CONFIG.run}.>") as heard,
            open_link(theirs, "theirs") as link,
        ):
            for stream in (SUBJECTS.tasks, SUBJECTS.episodes(0), SUBJECTS.judged):
                with pytest.raises(ApiError) as refused:
                    await ask(link, f"STREAM.INFO.{stream}", None, Response, timeout_s=HANGS_S)
                assert refused.value.failure.err_code == STREAM_NOT_FOUND
            with pytest.raises(NoResponder):
                await link.request(SUBJECTS.checkpoint(PolicyVersion(1)), b"forged", timeout_s=HANGS_S)
            assert await ours.last_seq(SUBJECTS.checkpoints) == 0
            # What is ours arrives, and nothing came before it.
            beat = Heartbeat(role=Role.FEEDER, worker=WorkerId("w"), state="working", at=1.0)
            await ours.tell(SUBJECTS.heartbeat(Role.FEEDER, WorkerId("w")), beat)
            with anyio.fail_after(HANGS_S):
                assert (await anext(heard)).message == beat
        with pytest.raises(ConfigurationError, match="no account for the run third"):
            address_of(tmp_path, run=RunName("third"))


async def test_a_refusal_is_told_at_once_and_not_asked_for_again(tmp_path: Path) -> None:
    async with served(tmp_path), open_link(address_of(tmp_path, role="judge"), "judge") as link:
        for _ in range(2):
            with (
                pytest.raises(NotPermitted, match=r"key of judge is not permitted publish on r\.checkpoint\.1"),
                anyio.fail_after(HANGS_S),
            ):
                await link.request(SUBJECTS.checkpoint(PolicyVersion(1)), b"forged", timeout_s=10 * HANGS_S)
        # Requests that are allowed are not disturbed.
        await ask(link, f"STREAM.INFO.{SUBJECTS.judged}", None, Response, timeout_s=HANGS_S)


async def test_what_is_refused_is_remembered_within_bounds_and_each_refusal_is_an_error_of_its_own(tmp_path: Path) -> None:
    """A worker whose key is older than a message of its own tells it at every step."""
    async with served(tmp_path), connect(address_of(tmp_path, role="judge"), SUBJECTS, CONFIG, name="judge") as bus:
        beat = Heartbeat(role=Role.POLICY, worker=WorkerId("w"), state="working", at=1.0)
        for number in range(2 * _REMEMBERED):
            await bus.tell(SUBJECTS.heartbeat(Role.POLICY, WorkerId(f"w{number}")), beat)

        async def all_refused() -> bool:
            return SUBJECTS.heartbeat(Role.POLICY, WorkerId(f"w{2 * _REMEMBERED - 1}")) in bus._link._refused

        await until(all_refused)
        assert len(bus._link._refused) == _REMEMBERED
        raised = []
        for number in (-1, -1, -_REMEMBERED):
            with pytest.raises(NotPermitted, match=r"not permitted publish on r\.heartbeat\.policy\.w") as refused:
                await bus.tell(SUBJECTS.heartbeat(Role.POLICY, WorkerId(f"w{2 * _REMEMBERED + number}")), beat)
            raised.append(refused.value)
        assert len(set(map(id, raised))) == len(raised), "one that is raised again keeps every frame that it ever passed"


async def test_requests_that_are_refused_together_fail_each_with_an_error_of_its_own(tmp_path: Path) -> None:
    errors: list[NotPermitted] = []

    async def ask_for(judge: Link) -> None:
        with pytest.raises(NotPermitted) as refused:
            await judge.request(SUBJECTS.checkpoint(PolicyVersion(1)), b"forged", timeout_s=HANGS_S)
        errors.append(refused.value)

    async with (
        served(tmp_path),
        open_link(address_of(tmp_path, role="judge"), "judge") as judge,
        anyio.create_task_group() as group,
    ):
        for _ in range(3):
            group.start_soon(ask_for, judge)
    assert len(set(map(id, errors))) == 3


async def test_listening_where_one_may_not_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path), connect(address_of(tmp_path, role="judge"), SUBJECTS, CONFIG, name="judge") as bus:
        with pytest.raises(NotPermitted, match="not permitted subscription"):
            async with bus.listen(f"{CONFIG.run}.task.>"):
                pass


async def test_a_key_with_another_role_s_inbox_hears_no_answer(tmp_path: Path) -> None:
    async with served(tmp_path):
        judge = address_of(tmp_path, role="judge")
        with pytest.raises(NotPermitted, match="subscription"):
            async with connect(replace(judge, inbox_prefix=inbox_of("feeder")), SUBJECTS, CONFIG, name="spy"):
                pass


@pytest.mark.parametrize("role", ROLES)
async def test_no_answer_of_the_server_is_stored_for_a_role_that_may_not_write(role: Access, tmp_path: Path) -> None:
    # The server answers on whatever subject a request names: that must not become a way to write.
    stolen = f"{CONFIG.run}.lease.stolen"
    subjects = Subjects(CONFIG.run, CONFIG.num_shards)
    async with (
        served(tmp_path),
        connect(address_of(tmp_path), SUBJECTS, CONFIG, name="admin") as admin,
        open_link(address_of(tmp_path, role=role), role) as link,
    ):
        await admin.append_bytes(subjects.episodes(1), f"{CONFIG.run}.ep.1.e.task", b"forged")
        requests = ("INFO", f"STREAM.INFO.{subjects.episodes(1)}", f"DIRECT.GET.{subjects.episodes(1)}")
        for request in requests:
            body = b'{"seq":1}' if "DIRECT" in request else b""
            await link.publish(f"$JS.API.{request}", body, reply=stolen)
            await link.round_trip(HANGS_S)
        # The same request with an inbox of our own: the earlier ones have been answered by now.
        assert (await link.request(f"$JS.API.{requests[-1]}", b'{"seq":1}', timeout_s=HANGS_S)).data == b"forged"
        await ask(link, "INFO", None, Response, timeout_s=HANGS_S)
        assert await admin.subjects(subjects.leases, stolen) == {}


async def test_roles_hear_one_another_across_their_accounts(tmp_path: Path) -> None:
    beat = Heartbeat(role=Role.JUDGE, worker=WorkerId("w"), state="working", at=1.0)
    subject, wake = SUBJECTS.wake(WorkerId("w")), StepWake(episode=task().episode, attempt=1, step=0, observation_seq=1)
    async with (
        served(tmp_path),
        connect(address_of(tmp_path, role="judge"), SUBJECTS, CONFIG, name="judge") as judge,
        connect(address_of(tmp_path, role="monitor"), SUBJECTS, CONFIG, name="monitor") as monitor,
        connect(address_of(tmp_path, role="browser"), SUBJECTS, CONFIG, name="browser") as browser,
        connect(address_of(tmp_path, role="policy"), SUBJECTS, CONFIG, name="policy") as policy,
        monitor.listen(SUBJECTS.everything("heartbeat")) as heard,
        monitor.tail(SUBJECTS.heartbeats, SUBJECTS.everything("heartbeat")) as stored,
    ):
        await judge.tell(SUBJECTS.heartbeat(Role.JUDGE, WorkerId("w")), beat)
        with anyio.fail_after(HANGS_S):
            assert (await anext(heard)).message == beat
            assert (await anext(stored)).message == beat
        assert await browser.offer(subject, wake, timeout_s=HANGS_S) is Offered.ABSENT, (
            "nobody is there, and that is known at once"
        )
        async with policy.offers(subject, lambda message: message == wake):
            assert await browser.offer(subject, wake, timeout_s=HANGS_S) is Offered.TAKEN


async def test_a_key_that_the_server_does_not_know_is_refused(tmp_path: Path) -> None:
    stranger = KeyRing(tmp_path / "elsewhere")
    stranger.make(CONFIG.run)
    async with served(tmp_path / "server"):
        address = replace(address_of(tmp_path / "server", role="judge"), nkey_seed=stranger.seed(CONFIG.run, Access.JUDGE))
        with pytest.raises(NotPermitted, match="refuses the key of judge"):
            async with connect(address, SUBJECTS, CONFIG, name="stranger"):
                pass


async def test_keys_are_private_and_survive_a_restart(tmp_path: Path) -> None:
    async with nats_server(tmp_path, (CONFIG,)):
        before = {role: address_of(tmp_path, role=role) for role in Access}
    for role in Access:
        seed = tmp_path / "keys" / CONFIG.run / f"{role}.seed"
        assert stat.S_IMODE(seed.stat().st_mode) == 0o600
        assert seed.read_text() not in (tmp_path / "nats.log").read_text() + (tmp_path / "nats.conf").read_text()
        assert before[role].nkey_seed not in repr(before[role])
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    assert len({address.nkey_seed for address in before.values()}) == len(Access)
    async with nats_server(tmp_path, (CONFIG,)):
        assert {role: address_of(tmp_path, role=role) for role in Access} == before


async def test_a_key_that_others_may_read_or_that_is_missing_is_said_so(tmp_path: Path) -> None:
    KeyRing(tmp_path).make(CONFIG.run)
    folder = tmp_path / CONFIG.run
    assert read_seed(folder, Access.JUDGE).startswith("SU")
    (folder / "judge.seed").chmod(0o640)
    with pytest.raises(ConfigurationError, match=r"chmod 600 .*judge\.seed"):
        read_seed(folder, Access.JUDGE)
    (folder / "judge.seed").unlink()
    with pytest.raises(ConfigurationError, match=r"copy r/judge\.seed from the keys folder"):
        read_seed(folder, Access.JUDGE)
    for content in (b"no seed", b"\xff\xfe"):
        (folder / "trainer.seed").write_bytes(content)
        with pytest.raises(ConfigurationError, match="holds no nkey seed"):
            read_seed(folder, Access.TRAINER)
