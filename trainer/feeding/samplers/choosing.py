"""The sampler that a configuration names."""

from collections.abc import Sequence

import structlog

from schemas.env_config import EnvConfig
from trainer.feeding.samplers import Sampler
from trainer.feeding.samplers.adaptive import AdaptiveSampler
from trainer.feeding.samplers.ratio import RatioSampler, difficulty_classes
from trainer.feeding.samplers.uniform import UniformSampler
from trainer.feeding.task_files import TaskSpec

_log = structlog.get_logger()


def sampler_of(env: EnvConfig, specs: Sequence[TaskSpec], *, num_members: int, seed: int) -> Sampler:
    """`num_members`: episodes of every task, so that a round of tasks is what an iteration consumes.

    Raises:
        ConfigurationError: no task could ever be drawn.
    """
    per_round = max(1, env.train_tasks_rollout_size // num_members)
    tasks = tuple(specs)
    match env.train_tasks_sampler:
        case "uniform" if env.deduplicate_across_iterations:
            return UniformSampler(tasks, seed)
        case "uniform":
            _warn_when_short("all", tasks, per_round)
            return UniformSampler(tasks, seed, per_round)
        case "ratio":
            classes = difficulty_classes(tasks, env.difficulty_ratio, per_round)
            for each in classes:
                _warn_when_short(each.name, each.specs, each.quota)
            if num_left_out := len(tasks) - sum(len(each.specs) for each in classes):
                _log.warning("tasks_of_no_difficulty_class", num_tasks=num_left_out)
            return RatioSampler(classes, seed, env.deduplicate_across_iterations)
        case "adaptive":
            _warn_when_short("all", tasks, per_round)
            return AdaptiveSampler(tasks, seed, per_round)


def _warn_when_short(name: str, specs: Sequence[TaskSpec], wanted: int) -> None:
    if len(specs) < wanted:
        _log.warning("too_few_tasks", difficulty_class=name, num_tasks=len(specs), wanted_an_iteration=wanted)
