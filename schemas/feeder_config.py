"""The mode of the run, and which episodes are admitted when."""

from dataclasses import dataclass, field
from typing import Literal

from schemas.ranges import MAX_STEPS
from schemas.requirement import require


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What changes while a run goes on."""

    from_version: int
    """The first version with which it holds."""
    max_steps: int | None = None
    """Steps of a training episode at most, whatever its difficulty."""
    learning_rate: float | None = None
    """Its height, in place of `algorithm_config.learning_rate`; a critic's changes by the same factor."""

    def __post_init__(self) -> None:
        where = "feeder_config.stages: "
        require(self.from_version >= 0, f"{where}from_version is {self.from_version}: write the number of a version")
        require(
            self.max_steps is None or 1 <= self.max_steps <= MAX_STEPS,
            f"{where}max_steps is {self.max_steps}: write 1 to {MAX_STEPS}",
        )
        require(
            self.learning_rate is None or self.learning_rate > 0,
            f"{where}learning_rate is {self.learning_rate}: write a number above 0",
        )


@dataclass(frozen=True, kw_only=True)
class FeederConfig:
    mode: Literal["sync", "async", "offline", "eval", "rollout"] = "async"
    """`sync`: WebGym's iterations; `async`: everlasting pool; `offline`: train on stored episodes, without a feeder;
    `eval`: the test split once; `rollout`: collect only."""
    num_stored: int = 0
    """`offline`: judged training episodes of the data set. One pass trains on each of them once, in batches of
    `env_config.train_tasks_rollout_size`, the last one shorter; passes follow each other until `num_iterations` versions are
    published. `millrace replay` counts them and writes this."""
    max_staleness: int = 1
    """Versions that a training episode may lag behind the trainer; `sync` means 0."""
    max_concurrent: int = 256
    """Training episodes admitted and not yet ended."""
    num_iterations: int = 100
    """Training iterations after which nothing more is admitted."""
    seed: int = 0
    """Of the order of tasks, and of sampling."""
    demonstrate: bool = False
    """Episodes are to be played by the pages' own scripted oracle."""
    evaluate_first: bool = False
    """Play the test split with version 0 before any training episode is admitted."""
    evaluate_last: bool = False
    """Play the test split with the last version before the run ends."""
    eval_every: int = 0
    """Versions between evaluation rounds that run beside training; 0: none."""
    stages: dict[str, Stage] = field(default_factory=dict)
    """By names of your own, as in `{long: {from_version: 90, max_steps: 30, learning_rate: 5.0e-7}}`; of several, the one that
    began last counts."""
    lease_s: float = 5.0
    """A standby feeder takes over so long after the active one falls silent."""
    audit_s: float = 60.0
    """Seconds without an episode that ends, after which the active feeder looks at everything that is under way: what is
    queued nowhere is queued again, and what has aged out is given up."""

    def __post_init__(self) -> None:
        require(self.max_staleness >= 0, f"feeder_config.max_staleness is {self.max_staleness}: write 0 or more")
        require(self.max_concurrent > 0, "feeder_config.max_concurrent must be above 0")
        for name in ("lease_s", "audit_s"):
            require(getattr(self, name) > 0, f"feeder_config.{name} is {getattr(self, name)}: write more than 0")
        require(self.num_iterations > 0, "feeder_config.num_iterations must be above 0")
        require(self.eval_every >= 0, f"feeder_config.eval_every is {self.eval_every}: write 0 or more")
        require(self.seed >= 0, f"feeder_config.seed is {self.seed}: write 0 or more")
        begins = [stage.from_version for stage in self.stages.values()]
        require(
            len(set(begins)) == len(begins),
            "feeder_config.stages has two that begin with one version: write another from_version",
        )
        require(self.num_stored >= 0, f"feeder_config.num_stored is {self.num_stored}: write 0 or more")

    def max_steps(self, version: int) -> int | None:
        """Of a training episode that is admitted with `version`; None: no stage says so."""
        return next((stage.max_steps for stage in self._begun(version) if stage.max_steps is not None), None)

    def learning_rate(self, version: int) -> float | None:
        """Of the iteration that begins from `version`; None: no stage says so."""
        return next((stage.learning_rate for stage in self._begun(version) if stage.learning_rate is not None), None)

    def _begun(self, version: int) -> list[Stage]:
        """The latest first."""
        begun = (stage for stage in self.stages.values() if stage.from_version <= version)
        return sorted(begun, key=lambda stage: stage.from_version, reverse=True)

    @property
    def trains(self) -> bool:
        """Whether training tasks are played."""
        return self.mode not in ("eval", "offline")

    @property
    def learns(self) -> bool:
        """Whether there is a trainer."""
        return self.mode not in ("eval", "rollout")

    @property
    def tests(self) -> bool:
        """Whether the test split is played at all."""
        return self.mode == "eval" or self.evaluate_first or self.evaluate_last or self.eval_every > 0

    @property
    def staleness_bound(self) -> int | None:
        """None: offline, where episodes of any age are the point."""
        match self.mode:
            case "sync":
                return 0
            case "offline":
                return None
            case _:
                return self.max_staleness
