"""Which versions have the optimizer's state: by number, by age, at the end, and when a trainer leaves."""

from schemas.trainer_config import TrainerConfig
from trainer.versions.saving import Saving


def whole_versions(saving: Saving, number: int) -> list[int]:
    found = [0]
    for version in range(1, number + 1):
        if saving.is_due(version, whole=found[-1], leaves=False):
            found.append(version)
    return found[1:]


def test_every_version_is_whole_unless_it_is_said() -> None:
    assert whole_versions(Saving(TrainerConfig(), num_iterations=9), 4) == [1, 2, 3, 4]


def test_every_so_many_and_the_last() -> None:
    assert whole_versions(Saving(TrainerConfig(save_every=3), num_iterations=8), 8) == [3, 6, 8]


def test_a_trainer_that_leaves_makes_its_last_version_whole() -> None:
    saving = Saving(TrainerConfig(save_every=100), num_iterations=1000)
    assert not saving.is_due(7, whole=2, leaves=False)
    assert saving.is_due(7, whole=2, leaves=True)


def test_by_age_whichever_comes_first() -> None:
    now = [0.0]
    saving = Saving(TrainerConfig(save_every=100, save_minutes=10), num_iterations=1000, clock=lambda: now[0])
    found: list[int] = []
    for version in range(1, 7):
        now[0] += 240.0
        if saving.is_due(version, whole=found[-1] if found else 0, leaves=False):
            found.append(version)
    assert found == [3, 6]
    now[0] += 599.0
    assert not saving.is_due(7, whole=6, leaves=False)
    assert saving.is_due(106, whole=6, leaves=False)
