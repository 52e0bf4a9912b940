"""The whole configuration: one frozen dataclass per component, each in a file of its own, and what they have to agree on.

Groups and keys that WebGym's users know keep their names, units and defaults (its configuration reference); new groups hold
what is new. `ops.config.loading` composes YAML files and overrides into a `Config`; nothing else travels further.
"""

from dataclasses import dataclass, field

from schemas.algorithm_config import AlgorithmConfig
from schemas.archive_config import ArchiveConfig
from schemas.browser_config import BrowserConfig
from schemas.bus_config import BusConfig
from schemas.context_config import ContextConfig
from schemas.env_config import EnvConfig
from schemas.feeder_config import FeederConfig
from schemas.judge_config import JudgeConfig, OpenAIConfig
from schemas.log_config import LogConfig
from schemas.model_config import ModelConfig
from schemas.monitor_config import MonitorConfig
from schemas.objective_config import ObjectiveConfig
from schemas.policy_config import PolicyConfig
from schemas.provider_requirements import require_episodes_fit
from schemas.requirement import require
from schemas.simulation_config import SimulationConfig
from schemas.trainer_config import TrainerConfig


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
    monitor_config: MonitorConfig = field(default_factory=MonitorConfig)
    simulation_config: SimulationConfig = field(default_factory=SimulationConfig)

    def __post_init__(self) -> None:
        policy = self.policy_config
        longest = min(policy.max_model_len, self.algorithm_config.cutoff_len)
        require(
            policy.max_new_tokens < longest or policy.engine != "vllm",
            f"policy_config.max_new_tokens is {policy.max_new_tokens}, and prompt and answer together have {longest} tokens "
            "at most: write less, or raise policy_config.max_model_len and algorithm_config.cutoff_len",
        )
        overlong = self.objective_config.overlong_buffer_len
        require(
            overlong <= policy.max_new_tokens,
            f"objective_config.overlong_buffer_len is {overlong}, and an answer has {policy.max_new_tokens} tokens at most: "
            "write the last tokens of these that cost, as in a quarter of policy_config.max_new_tokens",
        )
        require_episodes_fit(self.browser_config, self.env_config.task_timeout_minutes)
        self._require_tasks()

    def _require_tasks(self) -> None:
        """What WebGym's files say about the split that they do not play counts only where that split is played."""
        env, mode = self.env_config, self.feeder_config.mode
        require(
            env.train_tasks_rollout_size > 0 or mode == "eval",
            f"env_config.train_tasks_rollout_size is 0 and feeder_config.mode is {mode}: write a number of episodes, or eval "
            "for the mode",
        )
        require(
            env.train_tasks != "" or not self.feeder_config.trains,
            f"env_config.train_tasks is empty and feeder_config.mode is {mode}: write the name of a task file",
        )
        if mode in ("offline", "rollout") or not self.feeder_config.tests:
            return
        why = "feeder_config.mode is eval" if mode == "eval" else "feeder_config asks for evaluations"
        require(env.test_tasks != "", f"env_config.test_tasks is empty and {why}: write the name of a task file")
        require(
            env.test_tasks_rollout_size != 0 and env.test_tasks_repeat_times != 0,
            f"{why}, and of the test split nothing is to be played: write -1 (all) or a number for "
            "env_config.test_tasks_rollout_size, and 1 or more for env_config.test_tasks_repeat_times",
        )
