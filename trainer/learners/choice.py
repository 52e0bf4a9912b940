"""The learner that a configuration names."""

from schemas.algorithm_config import AlgorithmConfig
from schemas.objective_config import ObjectiveConfig
from trainer.learners import Learner
from trainer.learners.cloning import Cloning
from trainer.learners.parts import Parts
from trainer.learners.policy_gradient import PolicyGradient
from trainer.truncation import Truncation
from trainer.versions.checkpoints import TrainerState


def choose_learner(
    parts: Parts,
    state: TrainerState,
    *,
    algorithm: AlgorithmConfig,
    objective: ObjectiveConfig,
    seed: int,
    batch_size: int,
    staleness_bound: int | None,
    truncation: Truncation,
) -> Learner:
    """In the state in which an earlier one stood. `batch_size`: judgements of an iteration."""
    if objective.imitates:
        return Cloning(
            parts, state, algorithm=algorithm, objective=objective, seed=seed, batch_size=batch_size, truncation=truncation
        )
    return PolicyGradient(
        parts, state, objective=objective, batch_size=batch_size, staleness_bound=staleness_bound, truncation=truncation
    )
