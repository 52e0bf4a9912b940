"""What is one process's alone, on disks that know no locks: refused in a sentence, or done without."""

import errno
import fcntl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agents.weight_cache import WeightCache
from bus.jetstream.holdings import Held, open_holdings
from bus.server.lock import has_own_server, is_served, only_server
from ops.archive.folder import ArchiveFolder
from schemas.errors import ConfigurationError
from schemas.file_lock import try_lock
from tests.builders import RUN

pytestmark = pytest.mark.anyio


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", cannot)


async def serve(folder: Path) -> None:
    async with only_server(folder, lasting=True):
        pass


async def look(folder: Path) -> None:
    (folder / "nats.lock").touch()
    is_served(folder)


async def look_for_its_own(folder: Path) -> None:
    (folder / "nats.role").touch()
    has_own_server(folder)


async def cache(folder: Path) -> None:
    async with WeightCache(folder, num_kept=1).held():
        pass


async def archive(folder: Path) -> None:
    with ArchiveFolder(folder).writing(RUN, ""):
        pass


@pytest.mark.usefixtures("no_locks")
@pytest.mark.parametrize("use", [serve, look, look_for_its_own, cache, archive])
async def test_what_needs_a_lock_says_where_there_is_none(use: Callable[[Path], Awaitable[None]], tmp_path: Path) -> None:
    said = rf"{tmp_path} is on a disk that knows no file locks \(Function not implemented\): choose a folder on another one"
    with pytest.raises(ConfigurationError, match=said):
        await use(tmp_path)


@pytest.mark.usefixtures("no_locks")
async def test_a_worker_notes_nothing_there_and_gives_nothing_back(tmp_path: Path) -> None:
    file = tmp_path / "browser-1"
    file.write_text("+0 60 $JS.ACK.a\n")
    with open_holdings(file) as (own, left):
        own.took(Held("$JS.ACK.b", 60.0), 0.0)
    assert (list(left), file.read_text()) == ([], "+0 60 $JS.ACK.a\n")


async def test_a_lock_is_one_process_s_until_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as one, path.open("w") as other:
        assert try_lock(one, tmp_path)
        assert not try_lock(other, tmp_path)
    with path.open("w") as again:
        assert try_lock(again, tmp_path)
