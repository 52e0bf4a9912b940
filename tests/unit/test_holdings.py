"""What a killed worker held is known to the one that follows it, unless it has another owner by now."""

import os
import time
from pathlib import Path

import pytest

from bus.jetstream import holdings
from bus.jetstream.holdings import Held, open_holdings

A, B, C = Held("$JS.ACK.a", 5.0), Held("$JS.ACK.b", 60.0), Held("$JS.ACK.c", 5.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holdings" / "browser-1"


def left_in(path: Path, *, silent_s: float = 0.0) -> list[Held]:
    with open_holdings(path, clock=lambda: path.stat().st_mtime + silent_s) as (_, left):
        return list(left)


def test_what_was_taken_and_not_settled_is_left_once(path: Path) -> None:
    with open_holdings(path) as (own, left):
        assert list(left) == []
        for held in (A, B, C):
            own.took(held)
        own.settled(B)
        assert path.stat().st_mode & 0o777 == 0o600

    assert left_in(path) == [A, C]
    assert not path.exists()


def test_a_lease_that_has_run_out_is_left_to_its_new_owner(path: Path) -> None:
    with open_holdings(path) as (own, _):
        own.took(A)
        own.took(B)

    assert left_in(path, silent_s=10.0) == [B]


def test_a_sign_of_life_renews_every_lease(path: Path) -> None:
    with open_holdings(path) as (own, _):
        own.took(A)
        os.utime(path, (1.0, 1.0))
        own.renewed()
        assert time.time() - path.stat().st_mtime < A.ack_wait_s * 100


def test_two_processes_of_one_name_do_not_hand_back_each_others_work(path: Path) -> None:
    with open_holdings(path) as (own, _):
        own.took(A)
        with open_holdings(path) as (second, left):
            assert list(left) == []
            second.took(B)
            second.renewed()

    assert left_in(path) == [A]


def test_a_line_that_a_kill_cut_off_is_no_delivery(path: Path) -> None:
    with open_holdings(path) as (own, _):
        own.took(A)
    with path.open("a") as file:
        file.write("+")

    assert left_in(path) == [A]


def test_the_file_stays_small_however_long_a_worker_lives(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holdings, "_LINES", 10)
    with open_holdings(path) as (own, _):
        own.took(B)
        for number in range(1000):
            held = Held(f"$JS.ACK.{number}", 5.0)
            own.took(held)
            own.settled(held)
        assert len(path.read_text().splitlines()) < 50

    assert left_in(path) == [B]


def test_a_disk_that_takes_no_more_stops_no_worker(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_holdings(path) as (own, _):

        def full(file: int, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        own.took(A)
        own.settled(A)
        own.renewed()

    monkeypatch.undo()
    assert left_in(path) == []
