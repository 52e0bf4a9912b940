"""Plans what training plays and how much of it now: sampler, schedule, admission and refill of one configuration. Pure."""

import hashlib
import math
from collections.abc import Container, Mapping, Sequence

from schemas.env_config import EnvConfig
from schemas.feeder_config import FeederConfig
from schemas.ids import TaskId
from schemas.messages import SchedulePlace
from schemas.objective_config import ObjectiveConfig
from trainer.estimators import num_members
from trainer.feeding.attempts import Attempts
from trainer.feeding.curriculum import Admission, Slot
from trainer.feeding.feeder_state import FeederState
from trainer.feeding.refill import Refill
from trainer.feeding.samplers import sampler_of
from trainer.feeding.task_files import TaskSpec
from trainer.feeding.training_schedule import TrainingSchedule

_MOST_KNOWN = 20_000
"""Episodes that wait for a judgement, or to be trained on, before admission waits for judges: what judges hold at once, or
what an iteration may consume where that is more."""


class TrainingPlan:
    """Goes by the state that it gave last. Without tasks it is never asked for any."""

    def __init__(
        self,
        feeder: FeederConfig,
        env: EnvConfig,
        objective: ObjectiveConfig,
        tasks: Sequence[TaskSpec],
        sites: Mapping[TaskId, str],
    ) -> None:
        """`sites`: of every task."""
        self._demonstrate = feeder.demonstrate
        self._tasks = tuple(tasks)
        self._sites = sites
        self._num_members = 1 if feeder.demonstrate else num_members(objective)
        self._greedy_last = self._num_members > objective.group_size
        trains = feeder.staleness_bound is not None and not feeder.demonstrate
        self._refills = trains and objective.dynamic_sampling == "refill"
        self._admission = Admission(
            batch=env.train_tasks_rollout_size,
            max_concurrent=feeder.max_concurrent,
            staleness_bound=None if feeder.mode == "rollout" else feeder.staleness_bound,
            total=feeder.num_iterations * env.train_tasks_rollout_size,
            num_members=self._num_members,
            max_refill=objective.max_refill,
        )
        self._trains = feeder.mode != "rollout" and not feeder.demonstrate
        consumed = math.ceil((objective.max_refill if self._refills else 1.0) * env.train_tasks_rollout_size)
        self._most_known = max(_MOST_KNOWN, consumed + self._num_members) if self._trains else _MOST_KNOWN
        self._order = _order(feeder, env, self._num_members, tasks)
        self._sampler = sampler_of(env, tasks, num_members=self._num_members, seed=feeder.seed) if tasks else None
        self._state = self.begin()

    def begin(self) -> FeederState:
        """A state that knows nothing, and a schedule at its beginning."""
        refill = Refill(self._num_members) if self._refills else None
        self._state = FeederState(
            demonstrate=self._demonstrate, trains=self._trains, refill=refill, attempts=Attempts(self._num_members)
        )
        self._schedule = self._new_schedule()
        return self._state

    @property
    def adapts(self) -> bool:
        """Whether results decide what is drawn."""
        return self._sampler is not None and self._sampler.adapts

    @property
    def total(self) -> int:
        """Episodes of the whole run, refilled ones left out."""
        return self._admission.total

    def resume(self, place: SchedulePlace) -> None:
        """See `TrainingSchedule.resume`."""
        if self._schedule is not None:
            self._schedule.resume(place)

    @property
    def place(self) -> SchedulePlace:
        """Where the schedule stands."""
        return SchedulePlace() if self._schedule is None else self._schedule.memory()

    def limit(self, version: int) -> int:
        """Episodes that may have been admitted in all while `version` is served."""
        return self._admission.limit(version, self._state.refilled(version))

    def allowed(self, version: int) -> int:
        """Episodes that may be admitted now."""
        state = self._state
        allowed = self._admission.allowed(
            version=version, admitted=state.num_admitted, running=state.running, refilled=state.refilled(version)
        )
        return max(0, min(allowed, self._most_known - len(state.episodes)))

    def take(self, count: int, *, blocked: Container[str]) -> list[Slot]:
        """See `TrainingSchedule.take`."""
        assert self._schedule is not None, "all modes but eval have training tasks"
        return self._schedule.take(count, blocked=blocked)

    def note(self, version: int) -> str:
        """What a feeder says that admits nothing more in place of groups without variance; empty as long as it does."""
        refilled = self._state.refilled(version)
        if refilled is None or self._state.running > 0 or not self._admission.is_exhausted(version, refilled):
            return ""
        return (
            f"{refilled.in_vain} episodes since version {version} are of groups with equal rewards: no more are admitted in "
            "their place (objective_config.max_refill), the trainer goes on with the groups it has"
        )

    def _new_schedule(self) -> TrainingSchedule | None:
        if self._sampler is None:
            return None
        return TrainingSchedule(
            self._sampler,
            self._tasks,
            self._sites,
            self._state.attempts,
            num_members=self._num_members,
            greedy_last=self._greedy_last,
            demonstrate=self._demonstrate,
            order=self._order,
        )


def _order(feeder: FeederConfig, env: EnvConfig, num_members: int, tasks: Sequence[TaskSpec]) -> str:
    """Differs when another order is drawn."""
    drawn_by = (env.train_tasks_sampler, env.deduplicate_across_iterations, env.train_tasks_rollout_size, feeder.seed)
    shares = sorted((name, share.range, share.weight) for name, share in env.difficulty_ratio.items())
    digest = hashlib.sha256(repr((*drawn_by, shares, num_members)).removesuffix(")").encode())
    # As the names would be written with it in one list: a list of many tasks takes as much memory as they do.
    digest.update(b", [")
    for number, spec in enumerate(tasks):
        digest.update(f"{', ' if number else ''}{(spec.task, spec.difficulty)!r}".encode())
    digest.update(b"])")
    return digest.hexdigest()[:16]
