"""What the quickstart learns by: every family has a configuration for every objective that a run can begin with."""

import pytest

from ops.config.agreement import require_agreement
from ops.config.recipes import objective_names
from ops.quickstart.recipe import FAMILIES, lesson_config

OBJECTIVES = tuple(objective_names())
_FAMILIES = {family.gradient_recipe: name for name, family in FAMILIES.items()}.values()
"""One for each way to configure them."""


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("family", _FAMILIES)
def test_every_family_is_learnt_by_every_objective(family: str, objective: str) -> None:
    require_agreement(lesson_config(FAMILIES[family], objective, ()))


def test_samples_are_varied_where_the_objective_knows_no_ratio() -> None:
    varied = {
        objective
        for objective in OBJECTIVES
        if lesson_config(FAMILIES["miniwob"], objective, ()).algorithm_config.augmentation != "none"
    }
    assert varied == {"cloning", "reinforce", "self_imitation_by_step"}
    kept_near = lesson_config(FAMILIES["miniwob"], "reinforce", ("objective_config.kl_loss_coef=0.1",))
    assert kept_near.algorithm_config.augmentation == "none"
    asked = lesson_config(FAMILIES["miniwob"], "reinforce", ("algorithm_config.augmentation=none",))
    assert asked.algorithm_config.augmentation == "none"
