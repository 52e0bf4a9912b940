"""The layout of a run's folder, readable by its owner alone. Whoever creates a run stores its resolved configuration there."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ops.config.agreement import require_agreement
from ops.config.loading import dump_config, load_config
from schemas.config import Config
from schemas.errors import ConfigurationError

_MODE = 0o700
_MIB = 1024 * 1024
NEEDED_BYTES = 512 * _MIB
"""Free on the disk of a run that begins."""


@dataclass(frozen=True)
class RunFolder:
    """Paths of one run.

    config.yaml     resolved configuration
    config.lock     held by a process that changes it
    run.lock        held by the process that keeps the run's roles running here; a node's: node-NAME.lock
    import.json     which conversations of other people were imported last, and whether all of them are there
    server/         data and credentials of the run's own nats-server
    logs/           a JSON-lines file and an output file per worker
    holdings/       what each worker on this machine holds, for the process that follows it
    tasks/          task files made for this run
    model/          version 0, where the run makes it itself
    checkpoints/    a folder per version
    metrics.jsonl   the figures of every version; wandb/ and tensorboard/ follow it
    samples/        pages of sampled episodes
    weights/        versions that policies here fetched over the bus
    result.json     the figures, when the run has ended
    report/         what `millrace report` wrote
    evaluations/    runs of their own, in which versions of this one were evaluated
    rejudge-*.json  what judging again came to, by rubric
    """

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def imported(self) -> Path:
        return self.path / "import.json"

    @property
    def server(self) -> Path:
        return self.path / "server"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def lock(self, node: str = "") -> Path:
        return self.path / (f"node-{node}.lock" if node else "run.lock")

    def holdings(self, worker: str) -> Path:
        return self.path / "holdings" / worker

    @property
    def tasks(self) -> Path:
        return self.path / "tasks"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def weights(self) -> Path:
        return self.path / "weights"

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    def rejudged(self, rubric: str) -> Path:
        return self.path / f"rejudge-{rubric}.json"

    def relative(self, path: Path) -> Path:
        """What figures name: a path in this folder without it, so that the folder can be moved; any other as it is."""
        return path.relative_to(self.path) if path.is_relative_to(self.path) else path

    def create(self, config: Config, *, needed_bytes: int = NEEDED_BYTES) -> None:
        """Makes the folders, and stores the configuration atomically.

        Raises:
            ConfigurationError: keys of the configuration do not agree, the folder cannot be written, or its disk has less than
                `needed_bytes` free.
        """
        require_agreement(config)
        if self.config.is_dir():
            raise ConfigurationError(f"{self.config} is a folder, where a run has its configuration: choose another folder")
        try:
            for folder in (self.path, self.server, self.logs, self.tasks, self.model, self.checkpoints):
                folder.mkdir(mode=_MODE, parents=True, exist_ok=True)
            self.path.chmod(_MODE)
            self.require_space(needed_bytes)
            self.store(config)
        except OSError as error:
            raise ConfigurationError(
                f"the run's folder {self.path} cannot be written ({error.strerror}): choose another folder"
            ) from error

    def store(self, config: Config) -> None:
        """Replaces the stored configuration, whole or not at all."""
        partial = self.config.with_name(f"config.yaml.{os.getpid()}")
        partial.write_text(dump_config(config))
        partial.replace(self.config)

    def require_space(self, needed_bytes: int) -> None:
        free = shutil.disk_usage(self.path).free
        if free < needed_bytes:
            raise ConfigurationError(
                f"the disk of {self.path} has {free // _MIB} MiB free and the run needs {needed_bytes // _MIB} MiB: "
                "delete something there, or choose another folder"
            )

    def prompt_texts(self) -> Mapping[str, str]:
        """Of prompt files, as they were when the run was created; empty before that. Raises `ConfigurationError`."""
        return self.load().model_config.prompt_texts if self.config.is_file() else {}

    def load(self, overrides: Sequence[str] = ()) -> Config:
        """The stored configuration, with overrides for one worker.

        Raises:
            ConfigurationError: nobody has created the run.
        """
        if not self.config.is_file():
            raise ConfigurationError(
                f"{self.path} holds no run: give the --run-dir of one that was created, or create it: "
                "millrace server --config RECIPE --run-dir DIR"
            )
        return load_config(self.config, overrides)
