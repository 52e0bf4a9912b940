"""The learner that a configuration names."""

from schemas.algorithm_config import AlgorithmConfig
from schemas.objective_config import ObjectiveConfig
from trainer.learners import Learner
from trainer.learners.cloning import Cloning
from trainer.learners.parts import LearningRules, Parts
from trainer.learners.policy_gradient import PolicyGradient
from trainer.versions.checkpoints import TrainerState


def choose_learner(
    parts: Parts,
    state: TrainerState,
    *,
    algorithm: AlgorithmConfig,
    objective: ObjectiveConfig,
    rules: LearningRules,
) -> Learner:
    """In the state in which an earlier one stood."""
    if objective.imitates:
        return Cloning(parts, state, algorithm=algorithm, objective=objective, rules=rules)
    return PolicyGradient(parts, state, objective=objective, rules=rules)
