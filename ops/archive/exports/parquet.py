"""Parquet: `steps.parquet`, one row a step with its picture's bytes, and `episodes.parquet`, one row an episode."""

import pyarrow as pa

from ops.archive.exports.format import FormatOptions
from ops.archive.exports.played import Played
from ops.archive.exports.row_file import RowFile
from ops.archive.exports.step_rows import STEP_FIELDS, step_row
from ops.archive.tables import TRAJECTORIES, trajectory_columns

_STEPS = pa.schema([*STEP_FIELDS, ("picture", pa.binary()), ("picture_media_type", pa.string())])
_JUDGED = (("rubric", pa.string()), ("verdict", pa.string()), ("reward", pa.float64()))
_MESSAGE_COLUMNS = ("seq", "time_s", "data", "sha256", "records")
_EPISODES = pa.schema([*(field for field in TRAJECTORIES if field.name not in _MESSAGE_COLUMNS), *_JUDGED])


class ParquetFormat:
    """Satisfies `Format`."""

    def __init__(self, options: FormatOptions) -> None:
        self._options = options
        self._steps = RowFile(options.folder / "steps.parquet", _STEPS)
        self._episodes = RowFile(options.folder / "episodes.parquet", _EPISODES)

    def add(self, played: Played) -> int:
        judgement = played.judgement
        judged = {
            "rubric": judgement.rubric if judgement else None,
            "verdict": judgement.verdict.value if judgement else None,
            "reward": judgement.reward if judgement else None,
        }
        self._episodes.add(trajectory_columns(played.trajectory) | judged)
        steps = [step for step in played.steps if self._options.wants(step)]
        for step in steps:
            picture = step.observation.picture
            shown = {"picture": picture.data, "picture_media_type": picture.media_type}
            self._steps.add(step_row(played, step) | shown, len(picture.data))
        return len(steps)

    def close(self) -> None:
        self._steps.close()
        self._episodes.close()
