"""How many episodes an iteration with refill may have, as it goes on, by value: never fewer than its trainer waits for."""

from collections.abc import Iterable

import pytest

from schemas.env_config import EnvConfig
from schemas.feeder_config import FeederConfig
from schemas.ids import PolicyVersion
from schemas.messages import Outcome, Split, Task, Trajectory
from schemas.objective_config import ObjectiveConfig
from tests import builders
from tests.support.observed.feeding import specs
from trainer.feeding import training_plan
from trainer.feeding.blocked_sites import TrainingSites
from trainer.feeding.curriculum import task_of
from trainer.feeding.training_plan import TrainingPlan

NONE: frozenset[str] = frozenset()


class Iteration:
    """The first one of a synchronous run, on the feeder's side."""

    def __init__(self, *, batch: int, group_size: int, max_refill: float) -> None:
        self.feeder = FeederConfig(mode="sync")
        self.env = EnvConfig(train_tasks_rollout_size=batch)
        objective = ObjectiveConfig(
            adv_estimator="grpo", loss_type="clipped", group_size=group_size, dynamic_sampling="refill", max_refill=max_refill
        )
        tasks = specs()
        self.plan = TrainingPlan(self.feeder, self.env, objective, tasks, TrainingSites(tasks).by_task)
        self.state = self.plan.begin()
        self.num_judged = 0

    def admitted(self) -> list[Task]:
        """What may be admitted now, and is."""
        tasks = [
            task_of(slot, run=builders.RUN, split=Split.TRAIN, env=self.env, version=PolicyVersion(0), feeder=self.feeder)
            for slot in self.plan.take(self.plan.allowed(0), blocked=NONE)
        ]
        self.state.admit(task.episode for task in tasks)
        return tasks

    def judge(self, tasks: Iterable[Task], reward: float = 1.0) -> None:
        for task in tasks:
            self.num_judged += 1
            played = Trajectory(task=task, attempt=1, outcome=Outcome.DONE)
            self.state.apply(builders.judgement(played, reward), 0.0, self.num_judged)


def test_what_one_iteration_may_consume_is_admitted_whatever_judges_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_plan, "_MOST_KNOWN", 8)
    iteration = Iteration(batch=4, group_size=2, max_refill=4.0)
    while tasks := iteration.admitted():
        iteration.judge(tasks)
    assert iteration.num_judged == 16


@pytest.mark.parametrize("place", [0, 7])
@pytest.mark.parametrize("max_refill", [1.0, 2.0])
def test_another_group_takes_the_place_of_one_that_was_given_up(max_refill: float, place: int) -> None:
    iteration = Iteration(batch=8, group_size=8, max_refill=max_refill)
    tasks = iteration.admitted()
    iteration.judge(tasks[:place])
    iteration.state.give_up([tasks[place].episode])
    iteration.judge(tasks[place + 1 :], 0.5)
    further = iteration.admitted()
    assert len(further) == 8
    iteration.judge(further)
    assert len(iteration.admitted()) == 8 * (max_refill - 1), "in place of one whose rewards are equal"
