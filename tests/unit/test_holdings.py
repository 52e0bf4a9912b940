"""What a killed worker held is known to the one that follows it, unless it has another owner by now."""

import os
from pathlib import Path
from typing import cast

import pytest
from nats.aio.msg import Msg

from bus.jetstream import holdings
from bus.jetstream.calls import NoAnswer
from bus.jetstream.holdings import Held, Holdings, open_holdings
from bus.jetstream.link import Link
from bus.jetstream.work import JetStreamDelivery
from bus.ports import WorkQueue

QUEUE = WorkQueue("TASKS", "browsers", ("run.task.*",), ack_wait_s=5.0, max_deliver=-1)
A, B, C = Held("$JS.ACK.a", 5.0), Held("$JS.ACK.b", 60.0), Held("$JS.ACK.c", 5.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holdings" / "browser-1"


class Cut:
    """A link that is cut when `up` says so."""

    def __init__(self) -> None:
        self.up = True
        self.sent: list[tuple[str, bytes]] = []

    async def publish(self, subject: str, payload: bytes) -> None:
        if not self.up:
            raise NoAnswer("the connection was lost")
        self.sent.append((subject, payload))


def reply(seq: int) -> str:
    return f"$JS.ACK.TASKS.browsers.1.{seq}.{seq}.0.0"


def taken(link: Cut, own: Holdings, seq: int) -> JetStreamDelivery:
    message = Msg(_client=cast("object", None), subject="run.task.a", reply=reply(seq))  # type: ignore[arg-type]
    return JetStreamDelivery(cast("Link", link), QUEUE, message, own, lambda delivery: None)


def left_in(path: Path, *, now: float = 0.0) -> list[Held]:
    with open_holdings(path, clock=lambda: now) as (_, left):
        return list(left)


def test_what_was_taken_and_not_settled_is_left_once(path: Path) -> None:
    with open_holdings(path) as (own, left):
        assert list(left) == []
        for held in (A, B, C):
            own.took(held, 0.0)
        own.settled(B)
        assert path.stat().st_mode & 0o777 == 0o600

    assert left_in(path) == [A, C]
    assert not path.exists()


def test_a_lease_that_has_run_out_is_left_to_its_new_owner(path: Path) -> None:
    with open_holdings(path) as (own, _):
        own.took(A, 0.0)
        own.took(B, 0.0)

    assert left_in(path, now=10.0) == [B]


def test_what_is_taken_later_renews_no_lease(path: Path) -> None:
    with open_holdings(path) as (own, _):
        own.took(A, 0.0)
        own.took(C, 4.0)
        own.took(B, 8.0)
        own.settled(B)

    assert left_in(path, now=8.0) == [C]


def test_what_is_settled_while_it_is_renewed_stays_settled(path: Path) -> None:
    with open_holdings(path) as (own, _):
        own.took(A, 0.0)
        own.settled(A)
        own.renewed(A, 1.0)

    assert left_in(path, now=1.0) == []


def test_what_a_clock_that_was_set_back_puts_in_the_future_is_left_alone(path: Path) -> None:
    with open_holdings(path) as (own, _):
        own.took(A, 100.0)

    assert left_in(path, now=50.0) == []


@pytest.mark.anyio
async def test_a_sign_of_life_renews_the_lease_that_it_names_if_it_was_sent(path: Path) -> None:
    now, link = 0.0, Cut()
    with open_holdings(path, clock=lambda: now) as (own, _):
        named, unheard, _ = (taken(link, own, seq) for seq in (1, 2, 3))
        now = 4.0
        await named.in_progress()
        link.up = False
        await unheard.in_progress()

    assert link.sent == [(reply(1), b"+WPI")]
    assert left_in(path, now=8.0) == [Held(reply(1), QUEUE.ack_wait_s)]


@pytest.mark.anyio
async def test_what_another_may_have_by_now_is_not_taken_from_him(path: Path) -> None:
    now, link = 0.0, Cut()
    with open_holdings(path, clock=lambda: now) as (own, _):
        renewed, lapsed = (taken(link, own, seq) for seq in (1, 2))
        now = 4.0
        await renewed.in_progress()
        now = 8.0
        await renewed.nak()
        await lapsed.nak()

    assert link.sent == [(reply(1), b"+WPI"), (reply(1), b"-NAK")]
    assert left_in(path, now=4.0) == []


def test_two_processes_of_one_name_do_not_hand_back_each_others_work(path: Path) -> None:
    with open_holdings(path) as (own, _):
        own.took(A, 0.0)
        with open_holdings(path) as (second, left):
            assert list(left) == []
            second.took(B, 0.0)

    assert left_in(path) == [A]


def test_a_line_that_a_kill_cut_off_is_no_delivery(path: Path) -> None:
    with open_holdings(path) as (own, _):
        own.took(A, 0.0)
    with path.open("a") as file:
        file.write("+")

    assert left_in(path) == [A]


def test_the_file_stays_small_however_long_a_worker_lives(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holdings, "_LINES", 10)
    with open_holdings(path) as (own, _):
        own.took(B, 0.0)
        for number in range(1000):
            held = Held(f"$JS.ACK.{number}", 5.0)
            own.took(held, 0.0)
            own.settled(held)
        assert len(path.read_text().splitlines()) < 50

    assert left_in(path) == [B]


def test_a_disk_that_takes_no_more_stops_no_worker(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_holdings(path) as (own, _):

        def full(file: int, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        own.took(A, 0.0)
        own.renewed(A, 0.0)
        own.settled(A)

    monkeypatch.undo()
    assert left_in(path) == []
