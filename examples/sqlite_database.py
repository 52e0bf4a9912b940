"""Writes judged episodes into a SQLite database, and keeps it up to date.

    python examples/sqlite_database.py --run-dir runs/mine --into episodes.db
    sqlite3 episodes.db 'SELECT website, avg(verdict = "success") FROM judgements GROUP BY website'

Where it came to is the highest `seq` in the table itself: a row and the place behind it are one transaction, so that it may be
killed at any moment, and goes on without a gap. A row is known by run, episode and rubric: written again, it replaces itself.
"""

import argparse
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bus import After, Item, connect, consume
from schemas.messages import Judgement

_COLUMNS = ("run", "episode", "rubric", "seq", "at", "split", "task", "website", "outcome", "verdict", "reward", "num_steps")
_TABLE = f"CREATE TABLE IF NOT EXISTS judgements ({', '.join(_COLUMNS)}, PRIMARY KEY (run, episode, rubric))"
_ROW = f"INSERT OR REPLACE INTO judgements VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 (our own names)


async def keep(run_dir: Path, database: sqlite3.Connection, *, follow: bool) -> None:
    database.execute(_TABLE)
    async with connect(run_dir, name="sqlite", serve=True) as run:
        [(last,)] = database.execute("SELECT coalesce(max(seq), 0) FROM judgements WHERE run = ?", [run.name])
        async for item in run.judgements(start=After(last), follow=follow):
            with database:
                database.execute(_ROW, tuple(row(run.name, item)))
            print(f"{item.message.episode} {item.message.verdict.value}", flush=True)


def row(run: str, item: Item[Judgement]) -> Iterator[str | int | float | None]:
    """In the order of the columns."""
    judged, played = item.message, item.message.trajectory
    yield from (run, judged.episode, judged.rubric, item.seq, item.time.isoformat())
    yield from (judged.split.value, played.task.task, played.task.website)
    yield from (played.outcome.value, judged.verdict.value, judged.reward, played.num_steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run-dir", type=Path, default=Path("runs/quickstart"))
    parser.add_argument("--into", type=Path, default=Path("episodes.db"), help="the database (default: %(default)s)")
    parser.add_argument("--no-follow", dest="follow", action="store_false", help="end with the newest judgement")
    options = parser.parse_args()
    with closing(sqlite3.connect(options.into)) as database:
        consume(lambda: keep(options.run_dir, database, follow=options.follow))


if __name__ == "__main__":
    main()
