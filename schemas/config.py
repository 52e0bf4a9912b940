"""The configuration, one frozen dataclass a component; those of judging and training have files of their own (`judge_config`,
`algorithm_config`, `objective_config`, `trainer_config`, `lora_config`, `log_config`). Ranges are checked once.

Groups and keys that WebGym's users know keep their names, units and defaults (its configuration reference); new groups hold
what is new. `ops.configuration` composes YAML files and overrides into a `Config`; nothing else travels further.
"""

import itertools
import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from schemas.algorithm_config import AlgorithmConfig
from schemas.ids import RunName, subject_token
from schemas.judge_config import JudgeConfig, OpenAIConfig
from schemas.log_config import LogConfig
from schemas.objective_config import ObjectiveConfig
from schemas.requirement import require
from schemas.trainer_config import TrainerConfig

_HOST = re.compile(r"(?!.*\.\.)[\w.-]+", re.UNICODE)


def _require_hosts(key: str, hosts: tuple[str, ...]) -> None:
    """Names, or addresses, and nothing else."""
    for host in hosts:
        try:
            is_host = _HOST.fullmatch(host.strip()) is not None or bool(ip_address(host.strip("[]")))
        except ValueError:
            is_host = False
        require(
            is_host and not host.startswith("."),
            f"{key} has {host!r}, which is no host: write a name such as example.org (its subdomains are meant too) "
            "or an address, without scheme, port, path or wildcard",
        )


def _require_devtools_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        is_web = parts.scheme in ("http", "https", "ws", "wss") and bool(host) and parts.port != 0
    except ValueError:
        is_web = False
    require(
        is_web,
        f"browser_config.cdp_url is {url!r}: write the browser's DevTools address, as in http://127.0.0.1:9222 or wss://host/path",
    )
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    require(
        local or parts.scheme in ("https", "wss"),
        f"browser_config.cdp_url leads to {host} unencrypted: write https:// or wss:// for a browser on another machine "
        "(http and ws are for this machine, also for the near end of a tunnel)",
    )


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    model_type: Literal["qwen3-instruct", "qwen3-think"] = "qwen3-instruct"
    """Thinking models get their `<think>` blocks removed from older rounds."""
    prompt_version: Literal["vanilla", "complete"] = "vanilla"
    """`vanilla`: Action, tool_call. `complete`: Memory, Progress, Intention, Action, tool_call."""


@dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    engine: Literal["vllm", "openai", "oracle", "simulated"] = "vllm"
    """`openai`: any OpenAI-compatible endpoint; `oracle`: the page's own scripted oracle, for demonstrations; `simulated`: no
    model at all, see `simulation_config`."""
    base_model: str = ""
    """Folder of the model that version 0 stands for."""
    checkpoint_path: str = ""
    """Folder to load instead of `base_model` at the start."""
    max_new_tokens: int = 3072
    temperature: float = 1.0
    top_p: float = 0.99
    top_k: int = 2
    min_p: float = 0.0
    max_model_len: int = 16384
    """Tokens, prompt and completion together. The oldest rounds are left out of a prompt until `max_new_tokens` fit behind it,
    within this and `algorithm_config.cutoff_len`."""
    max_num_seqs: int = 128
    """Requests that the engine works on at once; also how many steps one worker holds."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    gpu_memory_utilization: float = 0.9
    base_url: str = ""
    """Of the OpenAI-compatible endpoint."""
    api_key_env_var: str = "OPENAI_API_KEY"
    vllm_timeout: float = 240.0
    """Seconds one answer may take."""

    def __post_init__(self) -> None:
        require(self.max_new_tokens > 0, f"policy_config.max_new_tokens is {self.max_new_tokens}: write a number above 0")
        require(self.temperature >= 0, f"policy_config.temperature is {self.temperature}: write 0 or more")
        require(0 < self.top_p <= 1, f"policy_config.top_p is {self.top_p}: write a number above 0 and at most 1")
        require(self.max_num_seqs > 0, f"policy_config.max_num_seqs is {self.max_num_seqs}: write a number above 0")


@dataclass(frozen=True, kw_only=True)
class ContextConfig:
    interaction_mode: Literal["coordinates", "set_of_marks"] = "coordinates"
    """How actions name their targets: points on a 0-1000 grid, or the numbers of elements that are marked in the picture."""
    actions: Literal["standard", "extended"] = "standard"
    """`standard`: WebGym's eight. `extended`: also double and right click, drag, keys, select, tabs and reading text."""
    accessibility_tree: bool = False
    """Give the page's accessibility tree to the policy as text, in the form that `env_config.use_rich_actree` says."""
    num_rounds: int = 4
    """Latest rounds kept with their pictures; older ones become one line of text each."""

    def __post_init__(self) -> None:
        require(self.num_rounds >= 0, f"context_config.num_rounds is {self.num_rounds}: write 0 or more")


@dataclass(frozen=True, kw_only=True)
class DifficultySteps:
    """Step caps; difficulty 1-3 is easy, 4-6 medium, 7 and more hard."""

    easy: int
    medium: int
    hard: int

    def __post_init__(self) -> None:
        require(min(self.easy, self.medium, self.hard) > 0, "difficulty_max_steps: easy, medium and hard must be above 0")

    def cap(self, difficulty: int) -> int:
        return self.easy if difficulty <= 3 else self.medium if difficulty <= 6 else self.hard


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
class HttpPools:
    """WebGym's names and sizes. Here they bound operations, since nothing goes over HTTP; small machines gain by less."""

    navigate: int = 128
    screenshot: int = 128
    ac_tree: int = 128
    metadata: int = 128
    """Marks and the environment's own state."""
    page_metadata: int = 128
    """Address, title and what changed."""
    execute: int = 128
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
    operation_timeout: float = 120.0
    """Seconds one browser operation may take."""
    task_timeout_minutes: float = 300.0
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
    train_tasks: str = "train.jsonl"
    test_tasks: str = "test.jsonl"
    train_tasks_rollout_size: int = 1024
    """Training episodes an iteration consumes: a multiple of the group's, see `objective_config.group_size`."""
    train_tasks_sampler: Literal["uniform", "ratio", "adaptive"] = "uniform"
    """`uniform`: all tasks alike. `ratio`: by `difficulty_ratio`. `adaptive`: new and once failed tasks first, seldom
    those that failed often or are solved; tasks of sites with few tasks more often."""
    difficulty_ratio: dict[str, DifficultyShare] = field(default_factory=dict)
    """Of `ratio`: classes of difficulty by name; tasks of none of them are not played."""
    deduplicate_across_iterations: bool = True
    """`uniform` and `ratio`: a task comes again once the others of the file (of its class) have come."""
    test_tasks_rollout_size: int = -1
    """First N test tasks in order; -1: all."""
    test_tasks_repeat_times: int = 1

    def __post_init__(self) -> None:
        for name in ("server_size", "evaluation_workers", "operation_timeout", "task_timeout_minutes"):
            require(getattr(self, name) > 0, f"env_config.{name} is {getattr(self, name):g}: write a number above 0")
        for name in ("max_retries", "instance_lifetime_max"):
            require(getattr(self, name) >= 0, f"env_config.{name} is {getattr(self, name):g}: write 0 or more")
        require(self.train_tasks_rollout_size > 0, "env_config.train_tasks_rollout_size must be above 0")
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


@dataclass(frozen=True, kw_only=True)
class BusConfig:
    run: RunName = RunName("millrace")
    """Names the run's streams and subjects."""
    url: str = ""
    """Of the NATS server or cluster, `tls://` beyond this machine; empty: the run folder's own server."""
    keys: str = ""
    """Folder with the `<role>.seed` files for `url`, of the roles that this node has; each readable by its owner only."""
    ca_file: str = ""
    """Certificates that vouch for the servers of `url`; empty: those that this machine trusts."""
    credentials_file: str = ""
    """Instead of `keys`: NATS credentials of an operator's account; readable by its owner only."""
    guest_runs: tuple[RunName, ...] = ()
    """Further runs that the run folder's own server has accounts for, with the same settings."""
    rubrics: tuple[str, ...] = ("environment_v1",)
    """Rubrics that judges score this run by: each has its queue of trajectories, and the judges' key may write it. The trainer
    and the feeder go by the first; the others stand beside it. Left out: that of `judge_config`."""
    sync_interval: str = "2m"
    """How often the run folder's own server forces its files to disk; `always`: before every acknowledgement."""
    num_shards: int = 1
    """EPISODES streams; 8 to 16 above about 1,000 live episodes with large pictures."""
    replicas: int = 1
    episodes_max_age_s: float = 7 * 86400.0
    """Seconds that chains and their pictures are kept; 0: for ever."""
    results_max_age_s: float = 30 * 86400.0
    """Seconds that trajectories, judgements and checkpoints are kept; 0: for ever."""
    episodes_max_gb: float = 0.0
    """Gigabytes (1e9 bytes) that each EPISODES stream may hold; 0: as much as the server has. A full stream drops nothing:
    its writers wait until age makes room."""
    results_max_gb: float = 0.0
    """Gigabytes that TRAJECTORIES, JUDGED and CHECKPOINTS may hold each; 0: as much as the server has."""
    weights: Literal["path", "bus"] = "path"
    """How policies get new weights: from the folder that the trainer announces, or, where that is not their disk, `bus`: the
    trainer also stores the files that policies load on the bus. A policy that can read the folder always takes it."""
    weights_kept: int = 2
    """Latest versions kept on the bus, and on the disk of a policy that fetched them."""
    weights_max_gb: float = 0.0
    """Gigabytes that WEIGHTS may hold: room for `weights_kept` + 1 versions; 0: as much as the server has."""
    weights_timeout_s: float = 60.0
    """Seconds for which a policy waits for a part of announced weights; then it goes on with those it has."""
    max_queued_tasks: int = 0
    """Tasks that are queued or being played; the feeder waits for room. 0: as many as the feeder admits."""
    max_payload_bytes: int = 8 * 1024 * 1024
    task_ack_wait_s: float = 30.0
    """A browser worker that is silent for so long loses its episode to another."""
    step_ack_wait_s: float = 3.0
    """A policy worker that is silent for so long loses a step from the shared queue to another."""
    judge_ack_wait_s: float = 60.0
    request_timeout_s: float = 10.0
    """Seconds until a request is sent again, longer than the failover of a cluster's leader; an operation of the bus fails
    after three times as long."""

    def __post_init__(self) -> None:
        require(1 <= self.num_shards <= 64, f"bus_config.num_shards is {self.num_shards}: write 1 to 64")
        require(self.replicas in (1, 3, 5), f"bus_config.replicas is {self.replicas}: write 1, 3 or 5")
        for name in ("episodes_max_gb", "results_max_gb", "weights_max_gb", "max_queued_tasks"):
            require(getattr(self, name) >= 0, f"bus_config.{name} is {getattr(self, name)}: write 0 (no limit) or more")
        require(self.weights_kept >= 2, f"bus_config.weights_kept is {self.weights_kept}: write 2 or more")
        require(self.weights_timeout_s > 0, f"bus_config.weights_timeout_s is {self.weights_timeout_s}: write more than 0")
        require(
            not (self.keys and self.credentials_file), "bus_config.keys and bus_config.credentials_file exclude each other"
        )
        require(self.rubrics != (), "bus_config.rubrics is empty: write the rubric of the run's judges")
        for rubric in self.rubrics:
            subject_token(rubric, what="bus_config.rubrics")
        require(
            re.fullmatch(r"always|[1-9][0-9]*(ms|s|m)", self.sync_interval) is not None,
            f"bus_config.sync_interval is {self.sync_interval!r}: write always, or a time such as 30s or 2m",
        )

    @property
    def trained_rubric(self) -> str:
        """Whose judgements count: trainer, feeder, figures and audit go by them alone. It is the same as long as the run."""
        return self.rubrics[0]


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
    demonstrate: bool = False
    """Episodes are to be played by the pages' own scripted oracle."""
    evaluate_first: bool = False
    """Play the test split with version 0 before any training episode is admitted."""
    evaluate_last: bool = False
    """Play the test split with the last version before the run ends."""
    eval_every: int = 0
    """Versions between evaluation rounds that run beside training; 0: none."""
    lease_s: float = 5.0
    """A standby feeder takes over so long after the active one falls silent."""

    def __post_init__(self) -> None:
        require(self.max_staleness >= 0, f"feeder_config.max_staleness is {self.max_staleness}: write 0 or more")
        require(self.max_concurrent > 0, "feeder_config.max_concurrent must be above 0")
        require(self.num_iterations > 0, "feeder_config.num_iterations must be above 0")
        require(self.eval_every >= 0, f"feeder_config.eval_every is {self.eval_every}: write 0 or more")
        require(self.seed >= 0, f"feeder_config.seed is {self.seed}: write 0 or more")
        require(self.num_stored >= 0, f"feeder_config.num_stored is {self.num_stored}: write 0 or more")

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


@dataclass(frozen=True, kw_only=True)
class BrowserConfig:
    engine: Literal["playwright", "simulated"] = "playwright"
    """`simulated`: no Chromium at all, see `simulation_config`."""
    executable: str = ""
    """Path of a Chromium; empty: the cheapest one found."""
    cdp_url: str = ""
    """Drive the browser behind this DevTools address (http, https, ws or wss) instead of starting one; beyond this machine
    only https and wss."""
    cdp_token_env_var: str = "MILLRACE_CDP_TOKEN"  # noqa: S105 - a name, not a secret
    """Environment variable with the bearer token for `cdp_url`, if there is one."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that pages may reach besides their task's own, as in `example.org` (with its subdomains); empty: all."""
    denied_hosts: tuple[str, ...] = ()
    """Hosts that no page may reach, whatever `allowed_hosts` says."""
    allow_private_hosts: bool = False
    """Let pages reach loopback, link-local and private addresses; a task's own site there is reached anyway."""
    max_episodes: int = 1000
    """Episodes after which a browser is replaced; 0: no limit."""
    max_memory_mb: int = 0
    """Memory (PSS, units of 2**20 bytes) of a browser with all its processes from which on it is replaced; 0: half of what the
    machine, or this process's control group, has."""
    page_memory_mb: int = 1024
    """Memory of one page's process at which that page is ended; its scripts' heap may grow to twice that; 0: no limit."""
    viewport_width: int = 1280
    viewport_height: int = 768
    picture_format: Literal["jpeg", "png"] = "jpeg"
    jpeg_quality: int = 80
    eval_share: float = 0.1
    """Share of the times that a free slot looks for an evaluation episode first; otherwise it looks for training first."""
    resend_s: float = 3.0
    """Seconds without an answer after which a slot asks again: the policy worker that took the step whether it still has it,
    or any other when that one is gone."""

    def __post_init__(self) -> None:
        require(self.viewport_width > 0 and self.viewport_height > 0, "browser_config.viewport_* must be above 0")
        require(1 <= self.jpeg_quality <= 100, f"browser_config.jpeg_quality is {self.jpeg_quality}: write 1 to 100")
        _require_hosts("browser_config.allowed_hosts", self.allowed_hosts)
        _require_hosts("browser_config.denied_hosts", self.denied_hosts)
        if self.cdp_url:
            _require_devtools_address(self.cdp_url)
        for name in ("max_episodes", "max_memory_mb", "page_memory_mb"):
            value = getattr(self, name)
            require(value >= 0, f"browser_config.{name} is {value}: write 0 or a number above it")


@dataclass(frozen=True, kw_only=True)
class ArchiveConfig:
    folder: str = ""
    """Where the archiver writes; empty: `archive/` in the run's folder."""
    episodes_per_part: int = 256
    """Episodes, or judgements, after which a file is written."""
    seconds_per_part: float = 300.0
    """A file is written at the latest so long after its first episode was read."""

    def __post_init__(self) -> None:
        require(self.episodes_per_part > 0, f"archive_config.episodes_per_part is {self.episodes_per_part}: write 1 or more")
        require(self.seconds_per_part > 0, "archive_config.seconds_per_part must be above 0")


@dataclass(frozen=True, kw_only=True)
class SimulationConfig:
    """What the simulated engines do. Everything is drawn from `seed` and the task, so that a task is always the same."""

    seed: int = 0
    picture_kb: float = 8.0
    """Size of every screenshot, in units of 1,024 bytes."""
    mean_steps: float = 4.0
    """Steps after which a simulated page is done."""
    max_steps: int = 30
    """No page takes more."""
    tail: Literal["none", "exponential", "pareto"] = "exponential"
    """How the numbers of steps and the latencies spread about their means; `pareto` has shape 1.8: a heavy tail."""
    step_latency_ms: float = 0.0
    """Mean time of one browser operation."""
    policy_latency_ms: float = 0.0
    """Mean time of one answer."""
    train_latency_ms: float = 0.0
    """Time of one optimizer step."""
    failure_share: float = 0.0
    """Share of the tasks whose page fails at some step."""
    success_share: float = 0.5
    """Share of the tasks that end with the full reward."""

    def __post_init__(self) -> None:
        require(self.picture_kb >= 1, f"simulation_config.picture_kb is {self.picture_kb}: write 1 or more")
        require(self.mean_steps >= 1, f"simulation_config.mean_steps is {self.mean_steps}: write 1 or more")
        require(self.max_steps >= 1, f"simulation_config.max_steps is {self.max_steps}: write 1 or more")
        for name in ("step_latency_ms", "policy_latency_ms", "train_latency_ms"):
            require(getattr(self, name) >= 0, f"simulation_config.{name} is {getattr(self, name)}: write 0 or more")
        for name in ("failure_share", "success_share"):
            require(0 <= getattr(self, name) <= 1, f"simulation_config.{name} is {getattr(self, name)}: write 0 to 1")


@dataclass(frozen=True, kw_only=True)
class Config:
    save_path: str = "runs/millrace"
    """The run's folder: server data, credentials, checkpoints, logs."""
    data_path: str = "."
    """Folder that task files are relative to."""
    model_config: ModelConfig = field(default_factory=ModelConfig)
    policy_config: PolicyConfig = field(default_factory=PolicyConfig)
    context_config: ContextConfig = field(default_factory=ContextConfig)
    env_config: EnvConfig = field(default_factory=EnvConfig)
    algorithm_config: AlgorithmConfig = field(default_factory=AlgorithmConfig)
    objective_config: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    bus_config: BusConfig = field(default_factory=BusConfig)
    feeder_config: FeederConfig = field(default_factory=FeederConfig)
    browser_config: BrowserConfig = field(default_factory=BrowserConfig)
    judge_config: JudgeConfig = field(default_factory=JudgeConfig)
    openai_config: OpenAIConfig = field(default_factory=OpenAIConfig)
    trainer_config: TrainerConfig = field(default_factory=TrainerConfig)
    log_config: LogConfig = field(default_factory=LogConfig)
    archive_config: ArchiveConfig = field(default_factory=ArchiveConfig)
    simulation_config: SimulationConfig = field(default_factory=SimulationConfig)

    def __post_init__(self) -> None:
        policy = self.policy_config
        longest = min(policy.max_model_len, self.algorithm_config.cutoff_len)
        require(
            policy.max_new_tokens < longest or policy.engine != "vllm",
            f"policy_config.max_new_tokens is {policy.max_new_tokens}, and prompt and answer together have {longest} tokens "
            "at most: write less, or raise policy_config.max_model_len and algorithm_config.cutoff_len",
        )
        size, members = self.env_config.train_tasks_rollout_size, self.objective_config.num_members
        require(
            size % members == 0 or self.feeder_config.mode in ("offline", "eval") or self.feeder_config.demonstrate,
            f"env_config.train_tasks_rollout_size is {size}, which is no multiple of a group's {members} episodes "
            f"(objective_config.group_size, and one more for remax): write {max(1, round(size / members)) * members}",
        )
        self.objective_config.require_effects()
