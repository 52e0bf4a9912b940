"""Metrics of the trainer: a line of JSON an iteration in the run's folder, and wandb where asked for."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from schemas.errors import ConfigurationError
from schemas.ids import RunName
from schemas.training_config import AlgorithmConfig, LogConfig


class MetricsLog:
    """Opened by `open_metrics`."""

    def __init__(self, file: Path, reporter: Any) -> None:
        self._file = file
        self._reporter = reporter

    def write(self, version: int, metrics: Mapping[str, float]) -> None:
        """Appends one iteration's figures."""
        with self._file.open("ab") as lines:
            lines.write(msgspec.json.encode({"version": version, **metrics}) + b"\n")
        if self._reporter is not None:
            self._reporter.log(dict(metrics), step=version)


@contextmanager
def open_metrics(folder: Path, *, run: RunName, algorithm: AlgorithmConfig, log: LogConfig) -> Iterator[MetricsLog]:
    """Opens `metrics.jsonl` in the run's folder and, with `report_to: wandb`, a wandb run that continues after a restart.

    Raises:
        ConfigurationError: wandb is asked for and not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    reporter = _wandb(folder, run, log) if algorithm.report_to == "wandb" else None
    try:
        yield MetricsLog(folder / "metrics.jsonl", reporter)
    finally:
        if reporter is not None:
            reporter.finish()


def _wandb(folder: Path, run: RunName, log: LogConfig) -> Any:
    try:
        import wandb
    except ImportError as error:
        raise ConfigurationError(
            "algorithm_config.report_to is wandb, which is not installed: pip install wandb, or write none"
        ) from error
    key = os.environ.get(log.wandb_key_env_var, "")
    if key:
        wandb.login(key=key)
    return wandb.init(
        project="millrace",
        entity=log.entity_name or None,
        name=log.run_name or run,
        id=run,
        resume="allow",
        dir=str(folder),
        mode="online" if key else "offline",
    )
