"""`millrace evaluate`: plays the test split with one checkpoint of a run, and prints its success with a 95 % interval.

It is a run of its own in `evaluations/<checkpoint>/` of the run's folder, with feeder, browser, policy and judge on this
machine. An evaluation that was interrupted goes on; one that is complete is only counted again.
"""

import json
import math
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console

from ops.configuration import load_config
from ops.dashboard import dashboard
from ops.local_roles import LocalRoles, local_roles
from ops.logs import role_logs
from ops.results import judgements_of
from ops.role_rows import role_rows
from ops.roles import join, subjects_of
from ops.run_folder import RunFolder
from ops.run_watch import RunWatch, watching
from ops.view import Progress, View
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.ids import PolicyVersion, RunName
from schemas.messages import Judgement, Role, Split
from trainer.model.adapter_folder import holds_adapters
from trainer.scores import mean_reward, score

_Z95 = 1.959963985
_ROLES = (Role.FEEDER, Role.BROWSER, Role.POLICY, Role.JUDGE)


@dataclass(frozen=True, kw_only=True)
class EvaluationResult:
    """The figures of an evaluation's `result.json`."""

    checkpoint: str
    num_episodes: int
    """Scored ones; failed and cancelled episodes are not counted."""
    num_successes: int
    success: float
    low: float
    """Wilson's 95 % interval."""
    high: float
    reward: float
    """Mean of the scored ones."""

    @classmethod
    def of(cls, checkpoint: Path, judgements: Sequence[Judgement]) -> "EvaluationResult":
        scores = [scored for judgement in judgements if (scored := score(judgement)) is not None]
        hits, total = sum(scored.success for scored in scores), len(scores)
        low, high = wilson_interval(hits, total)
        return cls(
            checkpoint=str(checkpoint),
            num_episodes=total,
            num_successes=hits,
            success=hits / total if total else 0.0,
            low=low,
            high=high,
            reward=mean_reward(scores) or 0.0,
        )

    def sentence(self) -> str:
        interval = f"[{self.low:.3f}, {self.high:.3f}]"
        return f"success {self.success:.3f}  95 % {interval}  {self.num_successes} of {self.num_episodes}  {self.checkpoint}"


def wilson_interval(successes: int, total: int) -> tuple[float, float]:
    """The score interval of a share (Wilson 1927) at 95 %; (0, 1) without a trial."""
    if total == 0:
        return 0.0, 1.0
    share, z2 = successes / total, _Z95**2
    centre = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = _Z95 / (1 + z2 / total) * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    return max(0.0, centre - half), min(1.0, centre + half)


async def main(run_dir: Path, checkpoint: str, overrides: Sequence[str]) -> int:
    run = RunFolder(run_dir)
    model = checkpoint_folder(run, checkpoint)
    folder = RunFolder(run.path / "evaluations" / _label(run, model))
    config = evaluation_config(run, whole_model(run, model), folder, overrides)
    folder.create(config)
    with (
        (folder.logs / "evaluate.out").open("a") as output,
        role_logs(folder.logs / "evaluate.log", run=config.bus_config.run, role="evaluate", worker="", stream=output),
    ):
        outcome = await evaluate(folder, config, run.relative(model))
    folder.result.write_text(json.dumps(asdict(outcome), indent=2) + "\n", encoding="utf-8")
    Console().print(outcome.sentence(), soft_wrap=True, highlight=False)
    return 0


def checkpoint_folder(run: RunFolder, checkpoint: str) -> Path:
    """The model folder that is meant by a version of the run or by a path.

    Raises:
        ConfigurationError: there is none; names the versions that there are. Or there is no run.
    """
    base = run.load().policy_config.base_model
    if not checkpoint.isdigit():
        folder = Path(checkpoint).resolve()
    elif int(checkpoint) == 0:
        folder = Path(base).resolve()
    else:
        folder = next(run.checkpoints.glob(f"v{int(checkpoint):06d}-*"), run.checkpoints / f"v{int(checkpoint):06d}")
    if not (folder / "config.json").is_file() and not holds_adapters(folder):
        kept = ", ".join(str(int(path.name[1:7])) for path in sorted(run.checkpoints.glob("v[0-9]*-*")))
        raise ConfigurationError(
            f"{folder} is not the folder of a model: write a version that is kept (0{', ' if kept else ''}{kept}) or a folder"
        )
    return folder


def whole_model(run: RunFolder, folder: Path) -> Path:
    """A checkpoint as a model that can be served by itself: adapters are merged with their base, once."""
    if not holds_adapters(folder):
        return folder
    from trainer.versions.merging import merge

    merged = run.path / "evaluations" / "merged" / folder.name
    if not merged.exists():
        merge(folder, merged)
    return merged


def _label(run: RunFolder, model: Path) -> str:
    """Names one checkpoint among all that may be evaluated for this run."""
    name = model.name if model.parent == run.checkpoints else f"{model.parent.name}-{model.name}"
    return re.sub(r"[^A-Za-z0-9_-]", "-", name)


def evaluation_config(run: RunFolder, model: Path, folder: RunFolder, overrides: Sequence[str]) -> Config:
    """The run's own configuration in mode eval, as a run of its own, in which only the judge of `judge_config` works."""
    name = RunName(f"{run.load().bus_config.run}-evaluation-{folder.path.name}"[:128])
    config = load_config(
        run.config,
        [
            f"save_path={folder.path}",
            f"bus_config.run={name}",
            "bus_config.guest_runs=[]",
            "feeder_config.mode=eval",
            f"policy_config.base_model={model}",
            "policy_config.checkpoint_path=''",
            "trainer_config.lora.rank=0",
            *overrides,
        ],
    )
    return replace(config, bus_config=replace(config.bus_config, rubrics=(config.judge_config.rubric,)))


async def evaluate(folder: RunFolder, config: Config, model: Path) -> EvaluationResult:
    """Runs the evaluation to its end; `model` is what it is shown as."""
    subjects = subjects_of(config)
    async with local_roles(folder) as roles:
        await roles.serve(config)
        async with join(folder, config, role="monitor", name="evaluate") as bus:
            began = time.monotonic()
            async with (
                watching(bus, subjects, config.bus_config) as watch,
                dashboard(lambda: _view(model, roles, watch, time.monotonic() - began)),
            ):
                roles.start(*_ROLES)
                await roles.finished(Role.FEEDER)
                await roles.stop(*_ROLES)
            judgements = await judgements_of(bus, subjects, config.bus_config.trained_rubric, Split.EVAL)
            return EvaluationResult.of(model, judgements)


def _view(model: Path, roles: LocalRoles, watch: RunWatch, elapsed_s: float) -> View:
    evaluation = watch.state.evaluations.get(PolicyVersion(0))
    done = evaluation.num_judged if evaluation else 0
    note = f"success {evaluation.success:.2f}" if evaluation else ""
    return View(
        title="Millrace evaluation",
        phases=("playing",),
        remark=str(model),
        elapsed_s=elapsed_s,
        roles=role_rows(roles.statuses.by_name, watch.state.heartbeats),
        progress=(Progress(label="test episodes", done=done, note=note),),
    )
