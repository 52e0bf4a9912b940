"""Tells a chat how each episode was judged, through an incoming webhook: Slack's and Mattermost's form, `{"text": ...}`.

    CHAT_WEBHOOK=https://chat.example.org/hooks/... python examples/chat_webhook.py --run-dir runs/mine --verdict failure

It begins with what is new, and under the same `--name` goes on where it was. A chat that does not answer is asked again until
it does, so nothing is lost. An episode is told twice only when this process was killed in the second behind its message.
"""

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

import anyio

from bus import NEW, connect, consume
from schemas.messages import Judgement

_PATIENCE_S = 60.0
_LONGEST_PAUSE_S = 60.0
_TOO_MANY = 429


async def tell(run_dir: Path, url: str, *, name: str, verdicts: list[str], follow: bool) -> None:
    async with connect(run_dir, name=name, serve=True) as run:
        async for item in run.judgements(verdict=verdicts, start=NEW, durable=name, follow=follow):
            await send(url, sentence(item.message))


def sentence(judged: Judgement) -> str:
    played = judged.trajectory
    reward = "no reward" if judged.reward is None else f"reward {judged.reward:g}"
    return f"{judged.verdict.value} ({reward}) in {played.num_steps} steps: {played.task.instruction} [{judged.episode}]"


async def send(url: str, text: str) -> None:
    """Returns when the chat has it. Ends the program where the chat says that it never takes it."""
    pause_s = 1.0
    while True:
        try:
            await anyio.to_thread.run_sync(post, url, text)
        except urllib.error.HTTPError as refusal:
            if refusal.code < 500 and refusal.code != _TOO_MANY:
                sys.exit(f"the chat refuses the message (HTTP {refusal.code}): is CHAT_WEBHOOK still right?")
            reason = f"HTTP {refusal.code}"
        except OSError as error:
            reason = str(error)
        else:
            return
        print(f"the chat does not take it ({reason}): once more", file=sys.stderr, flush=True)
        await anyio.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def post(url: str, text: str) -> None:
    request = urllib.request.Request(url, json.dumps({"text": text}).encode(), {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=_PATIENCE_S):  # noqa: S310 (the address is its user's own)
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run-dir", type=Path, default=Path("runs/quickstart"))
    parser.add_argument("--name", default="chat", help="under which the run keeps the place (default: %(default)s)")
    parser.add_argument("--verdict", action="append", default=[], help="may be repeated; without it, every verdict")
    parser.add_argument("--no-follow", dest="follow", action="store_false", help="end with the newest judgement")
    options = parser.parse_args()
    url = os.environ.get("CHAT_WEBHOOK", "")
    if not url.startswith(("https://", "http://")):
        parser.error("CHAT_WEBHOOK has to hold the address of the webhook: the chat gives it, and it is a secret")
    consume(lambda: tell(options.run_dir, url, name=options.name, verdicts=options.verdict, follow=options.follow))


if __name__ == "__main__":
    main()
