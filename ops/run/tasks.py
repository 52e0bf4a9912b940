"""The tasks of a run, by the name that its configuration gives to a file."""

from pathlib import Path

from schemas.config import Config
from trainer.feeding.task_files import TaskSpec, read_tasks


def tasks_of(config: Config, name: str) -> tuple[TaskSpec, ...]:
    """Raises `TaskFileError` when the file cannot be read; a simulated run's file is made."""
    return read_tasks(task_file_of(config, name))


def task_file_of(config: Config, name: str) -> Path:
    """Where it is; a simulated run's file is made."""
    file = Path(config.data_path) / name
    if config.browser_config.engine == "simulated":
        from ops.simulation.material import ensure_task_file

        ensure_task_file(file)
    return file
