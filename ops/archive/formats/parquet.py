"""Parquet: `steps.parquet`, one row a step with its screenshot's bytes, and `episodes.parquet`, one row per episode."""

import pyarrow as pa

from ops.archive.exports.played import Played
from ops.archive.exports.prompts import prompts
from ops.archive.exports.row_file import RowFile
from ops.archive.exports.step_rows import STEP_FIELDS, step_row
from ops.archive.formats import FormatOptions, exporter
from ops.archive.tables import TRAJECTORIES, Row, trajectory_columns
from schemas.messages import Judgement

_STEPS = pa.schema([*STEP_FIELDS, ("screenshot", pa.binary()), ("screenshot_media_type", pa.string())])
_PART = pa.struct([("name", pa.string()), ("value", pa.float64()), ("steps", pa.list_(pa.float64()))])
_JUDGED = (
    ("rubric", pa.string()),
    ("verdict", pa.string()),
    ("reward", pa.float64()),
    ("reward_parts", pa.list_(_PART)),
    ("blocked", pa.bool_()),
)
_MESSAGE_COLUMNS = ("seq", "time_s", "data", "sha256", "records")
_EPISODES = pa.schema([*(field for field in TRAJECTORIES if field.name not in _MESSAGE_COLUMNS), *_JUDGED])


@exporter("parquet")
class ParquetFormat:
    """Satisfies `Format`."""

    def __init__(self, options: FormatOptions) -> None:
        self._options = options
        self._steps = RowFile(options.folder / "steps.parquet", _STEPS)
        self._episodes = RowFile(options.folder / "episodes.parquet", _EPISODES)

    def add(self, played: Played) -> int:
        judged = _judged(played.judgement) if played.judgement else {}
        self._episodes.add(trajectory_columns(played.trajectory) | judged)
        options = self._options
        steps = [asked for asked in prompts(played, options.context, options.model) if options.wants(asked.step)]
        for asked in steps:
            screenshot = asked.step.observation.screenshot
            shown = {"screenshot": screenshot.data, "screenshot_media_type": screenshot.media_type}
            self._steps.add(step_row(played, asked) | shown, len(screenshot.data))
        return len(steps)

    def close(self) -> None:
        self._steps.close()
        self._episodes.close()


def _judged(judgement: Judgement) -> Row:
    return {
        "rubric": judgement.rubric,
        "verdict": judgement.verdict.value,
        "reward": judgement.reward,
        "reward_parts": [{"name": part.name, "value": part.value, "steps": list(part.steps)} for part in judgement.parts],
        "blocked": judgement.blocked,
    }
