"""Metrics and sampled episodes as a wandb run, which continues after a restart: its id is its name."""

import io
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from schemas.errors import ConfigurationError
from schemas.ids import RunName
from schemas.log_config import LogConfig
from trainer.tracking import Row, ShownEpisode

_COLUMNS = ("version", "episode", "verdict", "reward", "outcome", "instruction", "step", "screenshot", "action", "response")
_INIT_TIMEOUT_S = 60.0


class WandbRun:
    """A `Backend`. Every figure stands over `version`, since evaluations end later than training goes on."""

    def __init__(self, folder: Path, run: RunName, log: LogConfig, config: Mapping[str, object]) -> None:
        import wandb

        name = log.run_name or run
        key = os.environ.get(log.wandb_key_env_var, "")
        mode: Any = ("online" if key else "offline") if log.wandb_mode == "auto" else log.wandb_mode
        # Screenshots wait there for their upload, and offline that is where they stay: with the run, not in the home folder.
        os.environ.setdefault("WANDB_DATA_DIR", str(folder / "wandb" / "data"))
        os.environ.setdefault("WANDB_CACHE_DIR", str(folder / "wandb" / "cache"))
        # The key goes to this run alone: a login would store it in the home folder.
        settings: dict[str, Any] = {"api_key": key} if key else {}
        self._run = wandb.init(
            project=log.project_name,
            entity=log.entity_name or None,
            name=name,
            id=wandb_id(name),
            resume="allow",
            dir=str(folder),
            mode=mode,
            config=dict(config),
            settings=wandb.Settings(
                console="off", silent=True, disable_git=True, save_code=False, init_timeout=_INIT_TIMEOUT_S, **settings
            ),
        )
        self._run.define_metric("version", hidden=True)
        self._run.define_metric("*", step_metric="version")

    def log(self, row: Row) -> None:
        self._run.log({"version": row.version, **row.metrics})

    def show(self, version: int, episodes: Sequence[ShownEpisode]) -> None:
        import wandb

        table = wandb.Table(columns=list(_COLUMNS))
        for episode in episodes:
            for number, step in enumerate(episode.steps, 1):
                screenshot = wandb.Image(_opened(step.screenshot)) if step.screenshot else None
                words = (episode.episode, episode.verdict, episode.reward, episode.outcome, episode.instruction)
                table.add_data(version, *words, number, screenshot, step.action, step.response)
        self._run.log({"version": version, "samples": table})

    def close(self) -> None:
        self._run.finish()


def wandb_id(name: str) -> str:
    """The name as wandb takes it for an id."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:64]


def require_wandb() -> None:
    """Raises `ConfigurationError` when it is not installed."""
    try:
        import wandb  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            "algorithm_config.report_to has wandb, which is not installed: pip install wandb, or leave it out"
        ) from error


def _opened(screenshot: bytes) -> Image.Image:
    with Image.open(io.BytesIO(screenshot)) as opened:
        return opened.convert("RGB")
