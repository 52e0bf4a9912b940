"""Episodes: how many at once, how long they may take, and the tasks they play. WebGym's keys and defaults."""

import itertools
from dataclasses import dataclass, field

from schemas.ranges import LARGEST, MAX_STEPS
from schemas.requirement import require


@dataclass(frozen=True, kw_only=True)
class DifficultySteps:
    """Step caps; difficulty 1-3 is easy, 4-6 medium, 7 and more hard."""

    easy: int
    """Steps of an episode at most, difficulty 1 to 3."""
    medium: int
    """The same, difficulty 4 to 6."""
    hard: int
    """The same, difficulty 7 and more."""

    def cap(self, difficulty: int) -> int:
        """Tasks without a difficulty are easy."""
        caps = {"easy": self.easy, "medium": self.medium, "hard": self.hard}
        return caps.get(difficulty_class(difficulty), self.easy)


def difficulty_class(difficulty: int) -> str:
    """WebGym's classes: 1 to 3, 4 to 6, 7 and more."""
    if difficulty < 1:
        return "unknown"
    return "easy" if difficulty <= 3 else "medium" if difficulty <= 6 else "hard"


@dataclass(frozen=True, kw_only=True)
class DifficultyShare:
    """One class of training tasks."""

    range: tuple[int, int]
    """Lowest and highest difficulty, both included."""
    weight: float
    """Its share of an iteration's tasks is weight / the sum of all weights."""

    def __post_init__(self) -> None:
        low, high = self.range
        require(low <= high, f"env_config.difficulty_ratio has the range [{low}, {high}]: write the lower difficulty first")
        require(self.weight > 0, f"env_config.difficulty_ratio has the weight {self.weight:g}: write a number above 0")


@dataclass(frozen=True, kw_only=True)
class SuccessBands:
    """Weights of training tasks by their pass rate; a task that was not tried has the weight 1. OpenWebRL's."""

    all_fail: float = 0.5
    """Of a pass rate of 0."""
    low: float = 1.0
    """Below 0.3."""
    mid: float = 1.5
    """From 0.3, below 0.7."""
    high: float = 1.0
    """From 0.7, below 1."""
    all_success: float = 0.5
    """Of 1."""

    def __post_init__(self) -> None:
        for name, weight in vars(self).items():
            require(weight > 0, f"env_config.success_bands.{name} is {weight:g}: write a number above 0")


@dataclass(frozen=True, kw_only=True)
class HttpPools:
    """WebGym's names and sizes. Here they bound operations, since nothing goes over HTTP; small machines gain by less."""

    navigate: int = 128
    """Addresses that are being opened, and goings back."""
    screenshot: int = 128
    """Screenshots that are being taken."""
    ac_tree: int = 128
    """Accessibility trees that are being read."""
    metadata: int = 128
    """Marks and the environment's own state."""
    page_metadata: int = 128
    """Address, title and what changed."""
    execute: int = 128
    """All other actions."""
    allocate: int = 4
    """Contexts that are being made."""
    release: int = 4
    """Contexts that are being closed."""

    def __post_init__(self) -> None:
        for name, size in vars(self).items():
            require(size > 0, f"env_config.http_pools.{name} is {size}: write a number above 0")


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    server_size: int = 64
    """Episodes that one browser worker runs at once (slots)."""
    evaluation_workers: int = 16
    """Trajectories that one judge worker judges at once."""
    http_pools: HttpPools = HttpPools()
    """Browser operations of each kind that one worker has under way at once."""
    use_rich_actree: bool = False
    """The accessibility tree with states, values and boxes, instead of roles and names only."""
    verbose: bool = False
    """Workers log debug events too, and say everything that they log in their output as well, not warnings alone."""
    operation_timeout: float = 120.0
    """Seconds one browser operation may take."""
    task_timeout_minutes: float = 300.0
    """Minutes after which an episode is ended."""
    instance_lifetime_max: float = 50.0
    """Minutes after which a browser is replaced."""
    max_retries: int = 2
    """Times a failed episode is begun again before it is recorded as failed."""
    completion_threshold: float = 0.95
    """Synchronous mode: share of a batch that must be finished before the grace period begins."""
    completion_grace_period: float = 30.0
    """Seconds the rest of the batch then gets before it is cancelled."""
    train_difficulty_max_steps: DifficultySteps = DifficultySteps(easy=10, medium=20, hard=30)
    test_difficulty_max_steps: DifficultySteps = DifficultySteps(easy=30, medium=50, hard=70)
    max_unparsed: int = 0
    """Answers in a row that cannot be parsed and end an episode as a failure; 0: none do. What that costs beside, says
    `judge_config.shaping.unreadable`."""
    train_tasks: str = "train.jsonl"
    """Task file of training, in `data_path`."""
    test_tasks: str = "test.jsonl"
    """Task file of evaluation, in `data_path`."""
    train_tasks_rollout_size: int = 1024
    """Training episodes that an iteration consumes: a multiple of the group's, see `objective_config.group_size`. 0: none are
    played, where the mode is `eval`."""
    train_tasks_sampler: str = "uniform"
    """`uniform`: all tasks alike. `ratio`: by `difficulty_ratio`. `adaptive`: new and once failed tasks first, seldom
    those that failed often or are solved; tasks of sites with few tasks more often. `frontier`: those first that about half
    of a group's episodes solve. `success_bands`: by how often they are solved, with the weights of `success_bands`."""
    success_bands: SuccessBands = SuccessBands()
    difficulty_ratio: dict[str, DifficultyShare] = field(default_factory=dict)
    """Of `ratio`: classes of difficulty by name; tasks of none of them are not played."""
    deduplicate_across_iterations: bool = True
    """`uniform` and `ratio`: a task comes again once the others of the file (of its class) have come."""
    test_tasks_rollout_size: int = -1
    """First N test tasks in order; -1: all; 0: none, where nothing is evaluated."""
    test_tasks_repeat_times: int = 1
    """Times that each test task is played in a round; 0: never, where nothing is evaluated."""

    def __post_init__(self) -> None:
        for name in ("server_size", "evaluation_workers", "operation_timeout", "task_timeout_minutes"):
            require(getattr(self, name) > 0, f"env_config.{name} is {getattr(self, name):g}: write a number above 0")
        for name in ("max_retries", "instance_lifetime_max", "completion_grace_period"):
            require(getattr(self, name) >= 0, f"env_config.{name} is {getattr(self, name):g}: write 0 or more")
        for split in ("train", "test"):
            for name, cap in vars(getattr(self, f"{split}_difficulty_max_steps")).items():
                key = f"env_config.{split}_difficulty_max_steps.{name}"
                require(1 <= cap <= MAX_STEPS, f"{key} is {cap}: write 1 to {MAX_STEPS}")
        require(0 <= self.max_unparsed <= LARGEST, f"env_config.max_unparsed is {self.max_unparsed}: write 0 to {LARGEST}")
        for name in ("train_tasks_rollout_size", "test_tasks_repeat_times"):
            require(getattr(self, name) >= 0, f"env_config.{name} is {getattr(self, name)}: write 0 or more")
        require(
            self.test_tasks_rollout_size >= -1,
            f"env_config.test_tasks_rollout_size is {self.test_tasks_rollout_size}: write a number of tasks, or -1 for all",
        )
        require(
            self.train_tasks_sampler != "ratio" or self.difficulty_ratio != {},
            "env_config.train_tasks_sampler is ratio without env_config.difficulty_ratio: write its classes, as in "
            "difficulty_ratio: {easy: {range: [1, 3], weight: 2}, hard: {range: [4, 9], weight: 1}}",
        )
        ranges = sorted(share.range for share in self.difficulty_ratio.values())
        require(
            all(before[1] < after[0] for before, after in itertools.pairwise(ranges)),
            "env_config.difficulty_ratio has ranges that overlap: write every difficulty into one class at most",
        )
        require(0 < self.completion_threshold <= 1, "env_config.completion_threshold must be above 0 and at most 1")
