"""For how long a server that is being started is waited for: by value, and where a run's roles wait for theirs."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from bus.server import patience
from bus.server.patience import START_S, Patience, reading_s, size_of, tell_of_reading
from ops.config.loading import load_config
from ops.processes import local_roles
from ops.processes.local_roles import LocalRoles
from ops.run.folder import RunFolder
from schemas.errors import BusUnavailable
from schemas.messages import Role

pytestmark = pytest.mark.anyio
LARGE = 1_000_000_000_000


def lasts_s(num_bytes: int, *, works_each_s: int, until_s: float = float("inf")) -> int:
    """Seconds until patience is lost with a server that works every so many, and not any more from `until_s` on."""
    waited, waited_s = Patience(num_bytes), 0
    while not waited.is_over:
        waited_s += 1
        waited.spend(1.0, worked_s=0.01 * (min(waited_s, until_s) // works_each_s))
    return waited_s


@pytest.mark.parametrize("works_each_s", [1, 20])
def test_a_server_that_works_is_waited_for_until_a_slow_disk_would_have_given_it_its_store(works_each_s: int) -> None:
    assert lasts_s(0, works_each_s=works_each_s) == START_S
    assert lasts_s(10_000_000_000, works_each_s=works_each_s) == START_S + 500


def test_one_that_does_nothing_is_waited_for_no_longer_than_one_without_a_store() -> None:
    assert lasts_s(LARGE, works_each_s=31) == START_S
    assert lasts_s(LARGE, works_each_s=1, until_s=700) == 700 + START_S


def test_seconds_in_which_nobody_could_look_do_not_count() -> None:
    waited = Patience(0)
    for _ in range(int(START_S) - 1):
        waited.spend(1_000.0, worked_s=0.0)
    assert not waited.is_over


def test_a_store_is_as_large_as_all_its_files(tmp_path: Path) -> None:
    assert size_of(tmp_path / "none") == 0
    (tmp_path / "account" / "streams").mkdir(parents=True)
    for name, num_bytes in (("1.blk", 700), ("account/2.blk", 20), ("account/streams/3.blk", 1)):
        (tmp_path / name).write_bytes(bytes(num_bytes))
    assert size_of(tmp_path) == 721


@pytest.mark.parametrize(("num_bytes", "said"), [(12_345_000_000, ["12.3 GB"]), (1_000_000, [])])
async def test_only_what_takes_longer_than_a_moment_is_told(
    num_bytes: int, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_MOMENT_S", 0.1)
    with capture_logs() as logs:
        await tell_of_reading(num_bytes)
    assert [log["size"] for log in logs if log["event"] == "server_reads_its_store"] == said


@pytest.mark.parametrize("num_bytes", [LARGE, 0])
async def test_the_roles_of_a_run_wait_for_as_long_as_their_server_may_read(
    num_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, config, num_joined = RunFolder(tmp_path), load_config("default"), 0
    store = folder.server / "jetstream"
    store.mkdir(parents=True)
    (store / "1.blk").touch()
    os.truncate(store / "1.blk", num_bytes)

    class Answering:
        async def last_seq(self, _: str) -> int:
            return 0

    @asynccontextmanager
    async def join(*_: Any, **__: Any) -> AsyncIterator[Answering]:
        nonlocal num_joined
        num_joined += 1
        await anyio.sleep(0.01)
        if num_joined < 3:
            raise BusUnavailable("it reads")
        yield Answering()

    started: list[Role] = []
    monkeypatch.setattr(LocalRoles, "start", lambda _, role: started.append(role))
    monkeypatch.setattr(local_roles, "_SERVER_S", 0.0)
    monkeypatch.setattr(local_roles, "join", join)
    async with local_roles.local_roles(folder) as roles:
        if reading_s(num_bytes):
            await roles.serve(config)
        else:
            with pytest.raises(BusUnavailable, match="did not answer within 0 s"):
                await roles.serve(config)
    assert started == [Role.SERVER]
