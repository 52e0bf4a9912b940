"""The process that plays one system of the browser benchmark.

Says `ready` when its browser is up, waits for a line, plays, prints its figures as one line of JSON, and waits for another
line, so that whoever started it can measure it meanwhile.
"""

import argparse
import sys
import time

import anyio
import anyio.to_thread
import msgspec

from benchmarks.bare_playwright import BarePlaywright
from benchmarks.player import Player, Timed
from benchmarks.worker_alone import WorkerAlone
from browser_workers.chromium.process.executable import find_chromium
from ops.run.logs import quiet_logs

SYSTEMS = ("bare-png", "bare-jpeg", "alone")


class Played(msgspec.Struct):
    seconds: float
    num_steps: int
    phases: dict[str, list[float]]
    steps: dict[str, list[float]]


def player(system: str, site: str) -> Player:
    if system == "alone":
        return WorkerAlone(site)
    return BarePlaywright(find_chromium(), site, png=system == "bare-png")


async def play(playing: Player, num_sessions: int, num_episodes: int) -> Played:
    timed, left, num_steps = Timed(), iter(range(num_episodes)), 0

    async def session() -> None:
        nonlocal num_steps
        for episode in left:
            played = await playing.play(episode, timed)
            num_steps += played

    began = time.monotonic()
    async with anyio.create_task_group() as group:
        for _ in range(num_sessions):
            group.start_soon(session)
    return Played(time.monotonic() - began, num_steps, timed.seconds, timed.steps)


async def main(system: str, site: str, num_sessions: int, num_episodes: int) -> None:
    async with player(system, site) as playing:
        # The first episode finds files and code cold: it is nobody's figure.
        await playing.play(0, Timed())
        print("ready", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        played = await play(playing, num_sessions, num_episodes)
        print(msgspec.json.encode(played).decode(), flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("site")
    parser.add_argument("sessions", type=int)
    parser.add_argument("episodes", type=int)
    asked = parser.parse_args()
    with quiet_logs():
        anyio.run(main, asked.system, asked.site, asked.sessions, asked.episodes, backend_options={"use_uvloop": True})
