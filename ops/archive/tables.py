"""Episodes and judgements as Parquet rows, and back. Needs pyarrow; nothing else here knows the columns.

Columns that repeat what the message says are for people's queries; a reader trusts the bytes alone, and `verify` compares.
"""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from bus.codec import decode
from ops.archive.episodes import StoredEpisode, StoredJudgement, StoredRecord
from ops.archive.screenshots import CutRecord, ScreenshotStore, join
from schemas.errors import ArchiveDamaged, MessageCorrupt
from schemas.ids import EpisodeId
from schemas.messages import Judgement, Trajectory

Row = dict[str, Any]
"""One row as pyarrow takes and gives it."""
ROWS_PER_GROUP = 32
"""Rows that are decompressed together: bounds what a reader holds."""

_RECORD = pa.struct(
    [
        ("suffix", pa.string()),
        ("time_s", pa.float64()),
        ("data", pa.binary()),
        ("sha256", pa.string()),
        ("screenshot", pa.string()),
        ("screenshot_at", pa.int64()),
    ]
)
TRAJECTORIES = pa.schema(
    [
        ("seq", pa.int64()),
        ("run", pa.string()),
        ("episode", pa.string()),
        ("group", pa.string()),
        ("task", pa.string()),
        ("split", pa.string()),
        ("website", pa.string()),
        ("domain", pa.string()),
        ("difficulty", pa.int64()),
        ("distribution", pa.string()),
        ("published_split", pa.string()),
        ("instruction", pa.string()),
        ("attempt", pa.int64()),
        ("outcome", pa.string()),
        ("answer", pa.string()),
        ("environment_reward", pa.float64()),
        ("num_steps", pa.int64()),
        ("versions", pa.list_(pa.int64())),
        ("ended_at", pa.float64()),
        ("time_s", pa.float64()),
        ("data", pa.binary()),
        ("sha256", pa.string()),
        ("records", pa.list_(_RECORD)),
    ]
)
JUDGEMENTS = pa.schema(
    [
        ("seq", pa.int64()),
        ("run", pa.string()),
        ("episode", pa.string()),
        ("rubric", pa.string()),
        ("split", pa.string()),
        ("verdict", pa.string()),
        ("reward", pa.float64()),
        ("stages", pa.string()),
        ("blocked", pa.bool_()),
        ("num_calls", pa.int64()),
        ("cost", pa.float64()),
        ("time_s", pa.float64()),
        ("data", pa.binary()),
        ("sha256", pa.string()),
    ]
)


def encode_part(rows: Sequence[Row], schema: pa.Schema) -> bytes:
    """A Parquet file: the same rows give the same bytes."""
    buffer = io.BytesIO()
    table = pa.Table.from_pylist(list(rows), schema=schema)
    pq.write_table(table, buffer, compression="zstd", row_group_size=ROWS_PER_GROUP, write_page_checksum=True)
    return buffer.getvalue()


def trajectory_columns(trajectory: Trajectory) -> Row:
    """What a trajectory's row says about it beside its bytes."""
    task = trajectory.task
    return {
        "run": task.run,
        "episode": task.episode,
        "group": task.group,
        "task": task.task,
        "split": task.split.value,
        "website": task.website,
        "domain": task.domain,
        "difficulty": task.difficulty,
        "distribution": task.distribution,
        "published_split": task.published_split,
        "instruction": task.instruction,
        "attempt": trajectory.attempt,
        "outcome": trajectory.outcome.value,
        "answer": trajectory.answer,
        "environment_reward": trajectory.environment_reward,
        "num_steps": len(trajectory.steps),
        "versions": list(trajectory.versions),
        "ended_at": trajectory.ended_at,
    }


def judgement_columns(judgement: Judgement) -> Row:
    return {
        "run": judgement.trajectory.task.run,
        "episode": judgement.episode,
        "rubric": judgement.rubric,
        "split": judgement.split.value,
        "verdict": judgement.verdict.value,
        "reward": judgement.reward,
        "stages": msgspec.json.encode(judgement.stages).decode(),
        "blocked": judgement.blocked,
        "num_calls": sum(stage.num_calls for stage in judgement.usage),
        "cost": sum(stage.cost for stage in judgement.usage),
    }


def trajectory_row(seq: int, episode: StoredEpisode, records: Sequence[CutRecord]) -> Row:
    """`records` are those of the episode, their screenshots stored elsewhere."""
    return {
        **trajectory_columns(episode.trajectory),
        "seq": seq,
        "time_s": episode.trajectory_time_s,
        "data": episode.trajectory_data,
        "sha256": _digest(episode.trajectory_data),
        "records": [asdict(record) for record in records],
    }


def judgement_row(seq: int, judgement: StoredJudgement) -> Row:
    return {
        **judgement_columns(judgement.message),
        "seq": seq,
        "time_s": judgement.time_s,
        "data": judgement.data,
        "sha256": _digest(judgement.data),
    }


def read_trajectory(row: Row) -> Trajectory:
    """Raises `ArchiveDamaged`."""
    message = _checked(row, "trajectory")
    if not isinstance(message, Trajectory) or message.episode != row["episode"]:
        raise ArchiveDamaged(f"the row of episode {row['episode']} holds no trajectory of it")
    return message


def read_judgement(row: Row) -> StoredJudgement:
    """Raises `ArchiveDamaged`."""
    message = _checked(row, "judgement")
    if not isinstance(message, Judgement) or message.episode != row["episode"]:
        raise ArchiveDamaged(f"the row of episode {row['episode']} holds no judgement of it")
    return StoredJudgement(message.episode, message.split, message.rubric, row["time_s"], row["data"])


def cut_records(row: Row) -> tuple[CutRecord, ...]:
    return tuple(CutRecord(**record) for record in row["records"])


def read_episode(row: Row, screenshots: ScreenshotStore, judgements: Sequence[StoredJudgement]) -> StoredEpisode:
    """A row with its screenshots put back, every hash checked.

    Raises:
        ArchiveDamaged: a screenshot or record is not what was stored; names the episode.
    """
    trajectory = read_trajectory(row)
    try:
        records = tuple(_read_record(record, screenshots) for record in cut_records(row))
    except ArchiveDamaged as error:
        raise ArchiveDamaged(f"episode {trajectory.episode}: {error}") from error
    return StoredEpisode(
        episode=EpisodeId(trajectory.episode),
        trajectory=trajectory,
        trajectory_data=row["data"],
        trajectory_time_s=row["time_s"],
        records=records,
        judgements=tuple(judgements),
    )


def _read_record(record: CutRecord, screenshots: ScreenshotStore) -> StoredRecord:
    return join(record, screenshots.read(record.screenshot) if record.screenshot is not None else b"")


def _checked(row: Row, what: str) -> object:
    if _digest(row["data"]) != row["sha256"]:
        raise ArchiveDamaged(f"the {what} of episode {row['episode']} does not match its hash")
    try:
        return decode(row["data"])
    except MessageCorrupt as error:
        raise ArchiveDamaged(f"the {what} of episode {row['episode']}: {error}") from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
