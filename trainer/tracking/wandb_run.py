"""Metrics and sampled episodes as a wandb run, which continues after a restart: its id is its name."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
        files = folder / "wandb"
        self._uploaded = files / "cache" / "artifacts"
        os.environ.setdefault("WANDB_DATA_DIR", str(files / "data"))
        os.environ.setdefault("WANDB_CACHE_DIR", str(files / "cache"))
        # The key goes to this run alone: a login would store it in the home folder.
        settings: dict[str, Any] = {"api_key": key} if key else {}
        with _nothing_left(files):
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

        # wandb keeps a copy of everything that it has uploaded, in case somebody asks for it here again.
        shutil.rmtree(self._uploaded, ignore_errors=True)
        table = wandb.Table(columns=list(_COLUMNS))
        # Of a picture that is no file wandb makes a PNG, five times as large, which stays until this process ends.
        with TemporaryDirectory() as folder:
            for episode in episodes:
                for number, step in enumerate(episode.steps, 1):
                    file = Path(folder, f"{len(table.data)}.jpg")
                    file.write_bytes(step.screenshot)
                    screenshot = wandb.Image(file) if step.screenshot else None
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


@contextmanager
def _nothing_left(files: Path) -> Iterator[None]:
    """Of a run that could not be opened: wandb's own process would say of every later one that its id is in use, and there
    would be a folder for each try.
    """
    import wandb

    before = set(files.glob("run-*"))
    try:
        yield
    except Exception:
        with suppress(Exception):
            wandb.teardown()
            for tried in set(files.glob("run-*")) - before:
                shutil.rmtree(tried)
        raise
