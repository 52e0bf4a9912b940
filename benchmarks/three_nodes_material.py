"""What the drill of three nodes plays: a recipe, and the files that the node with feeder and trainer begins with."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anyio
import yaml

from ops.config.loading import load_config
from ops.config.overrides import as_overrides
from ops.processes.local_roles import local_roles
from ops.quickstart.quickstart import Quickstart
from ops.quickstart.results import Lesson
from ops.run.folder import RunFolder
from ops.simulation.material import ensure_task_file

_SIMULATED_VERSIONS = 14


@dataclass(frozen=True, kw_only=True)
class Material:
    name: str
    recipe: str
    """That of this project, which `keys` change."""
    keys: dict[str, dict[str, object]]
    swing: int
    """Judged episodes after which the run is in full swing."""
    place: Callable[[Path], None]
    """Puts task files and the first model into a node's folder."""
    has_model: bool = False

    def write_recipe(self, path: Path, *, run: str) -> Path:
        bus = {"run": run, "replicas": 3, "weights": "bus", **self.keys.get("bus_config", {})}
        content = {"defaults": [self.recipe, "_self_"], **self.keys, "bus_config": bus}
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    def roles(self, own: Path) -> dict[str, object]:
        """Of the node that has no browsers. Only the trainer is told where the first model is; the policy fetches it."""
        data = [*as_overrides({"data_path": str(own)})]
        model = as_overrides({"policy_config.base_model": str(own / "model")}) if self.has_model else ()
        return {"feeder": {"config": data}, "policy": 1, "judge": 1, "trainer": {"config": [*data, *model]}}


def simulated_material(_: Path, num_versions: int | None) -> Material:
    def place(own: Path) -> None:
        for name in ("train", "test"):
            ensure_task_file(own / "tasks" / f"{name}.jsonl")

    keys: dict[str, dict[str, object]] = {
        "env_config": {"server_size": 8, "train_tasks_rollout_size": 60},
        "feeder_config": {"num_iterations": num_versions or _SIMULATED_VERSIONS, "max_concurrent": 32},
        "simulation_config": {"step_latency_ms": 150.0, "policy_latency_ms": 100.0, "train_latency_ms": 100.0},
    }
    return Material(name="simulated", recipe="simulation", keys=keys, swing=60, place=place)


def quickstart_material(folder: Path, num_versions: int | None) -> Material:
    """Makes model and tasks as the quickstart does: made on the spot, shown demonstrations, warm-started. Takes minutes."""
    run = RunFolder(folder)
    config = load_config("quickstart", as_overrides({"save_path": str(folder), "data_path": str(folder)}))
    quickstart = Quickstart(
        run, config, Lesson(seed=0, family="click_button", observe="pixels", objective="cloning", mode="async")
    )
    run.create(quickstart.config)
    anyio.run(_warm_started, run, quickstart, backend_options={"use_uvloop": True})

    def place(own: Path) -> None:
        shutil.copytree(folder / "tasks", own / "tasks")
        shutil.copytree(folder / "warm" / "model", own / "model")

    feeder: dict[str, object] = {} if num_versions is None else {"num_iterations": num_versions}
    keys: dict[str, dict[str, object]] = {"feeder_config": feeder, "env_config": {"server_size": 12}}
    return Material(name="quickstart", recipe="quickstart", keys=keys, swing=128, place=place, has_model=True)


async def _warm_started(run: RunFolder, quickstart: Quickstart) -> None:
    async with local_roles(run) as roles:
        await quickstart.prepare(roles)
