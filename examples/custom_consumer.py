"""A consumer of one's own: success per website as episodes are judged, and the last screenshot of every failure as a file.

    python examples/custom_consumer.py --run-dir runs/quickstart --failures failures

It may run beside the training, on any machine that reaches the server, any number of times, and after it. With `--durable
NAME` it goes on where the last process of that name came to.
"""

import argparse
from collections import Counter
from pathlib import Path

import anyio

from bus import BEGINNING, Item, connect, consume
from schemas.errors import RecordGone
from schemas.messages import Judgement, Verdict

_SUFFIXES = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp"}


async def count(run_dir: Path, failures: Path, *, rubric: str | None, follow: bool, durable: str | None) -> None:
    judged: Counter[str] = Counter()
    solved: Counter[str] = Counter()
    async with connect(run_dir, name="example", serve=True) as run:
        items = run.judgements(split="train", rubric=rubric, start=BEGINNING, follow=follow, durable=durable)
        async for item in items:
            website = item.message.trajectory.task.website.partition("?")[0]
            judged[website] += 1
            solved[website] += item.message.verdict is Verdict.SUCCESS
            if item.message.verdict is Verdict.FAILURE:
                await save_last_screenshot(item, failures)
            print(f"{item.time:%H:%M:%S} {website}: {solved[website]} of {judged[website]} solved", flush=True)


async def save_last_screenshot(item: Item[Judgement], folder: Path) -> None:
    try:
        screenshots = await item.screenshots()
    except RecordGone as error:
        print(error)
        return
    if screenshots:
        suffix = _SUFFIXES.get(screenshots[-1].media_type, "bin")
        path = anyio.Path(folder) / f"{item.message.episode}.{suffix}"
        await path.parent.mkdir(parents=True, exist_ok=True)
        await path.write_bytes(screenshots[-1].data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run-dir", type=Path, default=Path("runs/quickstart"))
    parser.add_argument("--failures", type=Path, default=Path("failures"), help="folder for the screenshots")
    parser.add_argument("--no-follow", dest="follow", action="store_false", help="end with the newest judgement")
    parser.add_argument("--durable", metavar="NAME", help="keep the place under this name")
    parser.add_argument("--rubric", help="whose judgements; without it, every rubric's count")
    options = parser.parse_args()
    consume(
        lambda: count(options.run_dir, options.failures, rubric=options.rubric, follow=options.follow, durable=options.durable)
    )


if __name__ == "__main__":
    main()
