"""A consumer in the manner of another language: a NATS client and a MessagePack decoder, and nothing of Millrace.

    python examples/foreign_consumer.py --run-dir runs/quickstart --screenshots seen

Reads the log of finished trajectories record by record, then every screenshot of each by its subject: what docs/messages.md
says, in some forty lines. It creates nothing on the server; what it may read is up to its key.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from zlib import crc32

import msgpack
import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoServersError

_SUFFIXES = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp"}


async def told(error: Exception) -> None:
    """What goes wrong reaches whoever asked; the client would print it beside that."""


async def stored(client: Client, stream: str, request: dict[str, object]) -> Msg | None:
    """Direct get: the answer's payload is the record, its headers say subject, sequence and time."""
    answer = await client.request(f"$JS.API.DIRECT.GET.{stream}", json.dumps(request).encode(), timeout=60)
    return None if answer.headers and answer.headers.get("Status") == "404" else answer


async def consume(url: str, seed: str, run: str, folder: Path) -> None:
    # The answers come back under the prefix that the consumer's key may listen on.
    client = await nats.connect(
        url, nkeys_seed_str=seed, inbox_prefix="_INBOX_consumer", error_cb=told, max_reconnect_attempts=1, connect_timeout=60
    )
    about = json.loads((await client.request(f"$JS.API.STREAM.INFO.{run}_TRAJECTORIES", timeout=60)).data)
    num_shards = int(about["config"].get("metadata", {}).get("millrace.num_shards", "1"))
    seq = 1
    while True:
        found = await stored(client, f"{run}_TRAJECTORIES", {"seq": seq, "next_by_subj": f"{run}.trajectory.>"})
        if found is None or found.headers is None:
            break
        seq = int(found.headers["Nats-Sequence"]) + 1
        trajectory = msgpack.unpackb(found.data)
        assert trajectory["type"] == "trajectory/1"
        episode = trajectory["task"]["episode"]
        chain = f"{run}.ep.{crc32(episode.encode()) % num_shards}.{episode}.{trajectory['attempt']}"
        num_saved = 0
        for step in range(trajectory.get("num_observations", 0)):
            record = await stored(client, f"{run}_EPISODES{chain.split('.')[2]}", {"last_by_subj": f"{chain}.obs.{step}"})
            if record is not None:
                screenshot = msgpack.unpackb(record.data)["screenshot"]
                path = folder / episode / f"{step}.{_SUFFIXES.get(screenshot['media_type'], 'bin')}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(screenshot["data"])
                num_saved += 1
        print(f"{episode} {trajectory['outcome']}: {num_saved} screenshots", flush=True)
    await client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run-dir", type=Path, default=Path("runs/quickstart"), help="on the server's own machine")
    parser.add_argument("--url", help="of a server elsewhere, with --key and --run")
    parser.add_argument("--key", type=Path, help="file with the consumer's nkey seed")
    parser.add_argument("--run", help="the run's name, bus_config.run (default: the one that the server is for)")
    parser.add_argument("--screenshots", type=Path, default=Path("seen"), help="folder for the screenshots")
    options = parser.parse_args()
    url, key, run = options.url, options.key, options.run
    if url is None:
        server = options.run_dir / "server"
        place = json.loads((server / "nats.json").read_text())
        url, run = place["url"], run or place["runs"][0]
        key = key or server / "keys" / run / "consumer.seed"
    elif key is None or run is None:
        parser.error("--url needs --key and --run")
    try:
        asyncio.run(consume(url, key.read_text().strip(), run, options.screenshots))
    except NoServersError:
        sys.exit(f"no server answers at {url}: start the run's (`millrace server --run-dir ...`)")


if __name__ == "__main__":
    main()
