"""The consumers that people ask for: a chat that is told of episodes, a database that keeps them."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from bus.jetstream import JetStreamBus
from examples import chat_webhook
from schemas.messages import Outcome
from tests.builders import task
from tests.deadlines import HANGS_S
from tests.support.bus.played import judge, play
from tests.support.runs.loopback_chat import loopback_chat
from tests.support.runs.running_run import running_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ROOT = Path(__file__).parents[2]


@contextmanager
def example(name: str, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "examples" / name), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


async def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    output, errors = await anyio.to_thread.run_sync(partial(process.communicate, timeout=HANGS_S))
    return process.returncode, output, errors


async def judged(bus: JetStreamBus, name: str, reward: float) -> None:
    await judge(bus, await play(bus, task(name), outcome=Outcome.ANSWERED), reward)


async def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return (await anyio.to_thread.run_sync(process.stdout.readline)).rstrip()


async def test_a_chat_is_told_of_every_episode_once_though_it_fails_and_the_consumer_stops(tmp_path: Path) -> None:
    def text(name: str, verdict: str, reward: str) -> str:
        return f"{verdict} (reward {reward}) in 1 steps: click the button [train-r0000-{name}-m0]"

    async with running_run(tmp_path / "run") as bus:
        await judged(bus, "before", 1.0)
        with loopback_chat() as chat:
            arguments = ("chat_webhook.py", "--run-dir", str(tmp_path / "run"))

            async def told() -> None:
                assert await anyio.to_thread.run_sync(partial(chat.taken.acquire, timeout=HANGS_S))

            # Its place is kept from its first start on: what is new then is told.
            with example(*arguments, "--no-follow", CHAT_WEBHOOK=chat.url) as process:
                assert await ended(process) == (0, "", "")
            await judged(bus, "a", 1.0)
            chat.answers = [503]
            with example(*arguments, CHAT_WEBHOOK=chat.url) as process:
                await told()
                await judged(bus, "b", 0.0)
                await told()
                process.send_signal(signal.SIGINT)
                assert await ended(process) == (130, "", "the chat does not take it (HTTP 503): once more\n")
            assert chat.texts == [text("a", "success", "1"), text("b", "failure", "0")]
            await judged(bus, "c", 0.0)
            await judged(bus, "d", 1.0)
            with example(*arguments, "--verdict", "success", "--no-follow", CHAT_WEBHOOK=chat.url) as process:
                assert await ended(process) == (0, "", "")
            assert set(chat.texts[2:]) - {text("b", "failure", "0")} == {text("d", "success", "1")}
            await judged(bus, "e", 1.0)
            chat.answers = [404]
            with example(*arguments, "--no-follow", CHAT_WEBHOOK=chat.url) as process:
                code, _, errors = await ended(process)
            assert (code, errors) == (1, "the chat refuses the message (HTTP 404): is CHAT_WEBHOOK still right?\n")
            told_before = len(chat.texts)
            with example(*arguments, "--no-follow", CHAT_WEBHOOK=chat.url) as process:
                assert (await ended(process))[0] == 0
            assert chat.texts[told_before:] == [text("e", "success", "1")]


async def test_a_chat_that_is_away_for_a_day_is_still_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def post(url: str, text: str) -> None:
        if len(pauses) < 1_100:
            raise ConnectionRefusedError

    async def sleep(pause_s: float) -> None:
        pauses.append(pause_s)

    monkeypatch.setattr(chat_webhook, "post", post)
    monkeypatch.setattr(anyio, "sleep", sleep)
    await chat_webhook.send("https://chat.example.org", "text")
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, *[60.0] * 1_094]


async def test_a_database_has_every_episode_once_though_its_writer_is_killed(tmp_path: Path) -> None:
    database = tmp_path / "episodes.db"
    arguments = ("sqlite_database.py", "--run-dir", str(tmp_path / "run"), "--into", str(database))

    def rows() -> list[tuple[str, str, float]]:
        with closing(sqlite3.connect(database)) as opened:
            return opened.execute("SELECT task, verdict, reward FROM judgements ORDER BY seq").fetchall()

    async with running_run(tmp_path / "run") as bus:
        await judged(bus, "a", 1.0)
        with example(*arguments) as process:
            assert await line_of(process) == "train-r0000-a-m0 success"
            await judged(bus, "b", 0.0)
            assert await line_of(process) == "train-r0000-b-m0 failure"
            process.kill()
        await judged(bus, "c", 1.0)
        with example(*arguments, "--no-follow") as process:
            assert await ended(process) == (0, "train-r0000-c-m0 success\n", "")
    expected = [("a", "success", 1.0), ("b", "failure", 0.0), ("c", "success", 1.0)]
    assert rows() == expected
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute("UPDATE judgements SET seq = 0, verdict = '?'")  # as if nothing had been read yet
    with example(*arguments) as process:  # its run has ended
        assert (await ended(process))[0] == 0
    assert rows() == expected
