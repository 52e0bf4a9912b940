"""What `benchmarks.learning` runs: named configurations, each with what it is there to show and what it has to reach."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """Held-out success to reach in the evaluation rounds of a run."""

    minutes: float
    """Of the loop."""
    final: float = 0.0
    gain: float = 0.0
    """Over the warm start."""

    def reached(self, warm: float, success: float) -> bool:
        return success >= self.final and success - warm >= self.gain

    def __str__(self) -> str:
        wanted = f"{self.final:.2f}" if self.final else f"+{self.gain:.2f}"
        return f"{wanted} in {self.minutes:g} min"


LEARNS = Bar(15.0, gain=0.15)
"""Enough to tell learning from luck on 200 held-out pages."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """One quickstart."""

    name: str
    shows: str
    family: str = "click_button"
    objective: str = "cloning"
    overrides: tuple[str, ...] = ()
    """Of the run; where `own_start` says so, of its demonstrations and its warm start too."""
    own_start: bool = False
    """It reads or answers otherwise than its family, so that it begins from a warm start of its own."""
    mode: str = "async"
    bar: Bar = LEARNS

    @property
    def start(self) -> str:
        """Whoever has the same begins from the same model, tasks and warm start."""
        return self.name if self.own_start else self.family


def _policy_gradient(name: str, shows: str, *overrides: str, objective: str = "grpo", bar: Bar = LEARNS) -> Configuration:
    return Configuration(name=name, shows=shows, objective=objective, overrides=overrides, bar=bar)


_OBJECTIVES = (
    Configuration(name="cloning", shows="filtered cloning", bar=Bar(8.0, final=0.80)),
    _policy_gradient("grpo", "GRPO, constant normaliser, decoupled loss", bar=Bar(15.0, gain=0.30)),
    _policy_gradient("grpo_no_normaliser", "GRPO without the constant normaliser", "objective_config.length_normaliser=none"),
    _policy_gradient("rloo", "RLOO", objective="rloo"),
    _policy_gradient("reinforce_plus_plus", "REINFORCE++", objective="reinforce_plus_plus"),
    _policy_gradient(
        "reinforce_plus_plus_baseline",
        "REINFORCE++ with a baseline",
        "objective_config.adv_estimator=reinforce_plus_plus_baseline",
    ),
    _policy_gradient(
        "remax",
        "ReMax: a greedy episode as baseline",
        "objective_config.adv_estimator=remax",
        "env_config.train_tasks_rollout_size=513",
    ),
    _policy_gradient("ppo", "PPO: a critic", objective="ppo"),
    _policy_gradient("gspo", "GSPO: ratio of a whole step", objective="gspo"),
)
_LOSSES = (
    Configuration(
        name="weighted_cloning", shows="weighted cloning", overrides=("objective_config.loss_type=weighted_cloning",)
    ),
    *(
        _policy_gradient(name, f"loss {name}", f"objective_config.loss_type={name}", *more)
        for name, more in (
            ("clipped", ()),
            ("truncated", ()),
            ("cispo", ("objective_config.clip_ratio_c=0",)),
            ("dppo_tv", ("objective_config.clip_ratio_c=0",)),
        )
    ),
)
_TERMS = (
    _policy_gradient("kl_in_reward", "KL in the reward", "objective_config.kl_reward_coef=0.01"),
    _policy_gradient("refill", "groups without signal replaced", "objective_config.dynamic_sampling=refill"),
    _policy_gradient("lora", "adapters in place of all weights", "trainer_config.lora.rank=8"),
    _policy_gradient("frontier", "frontier sampler", "env_config.train_tasks_sampler=frontier"),
    _policy_gradient("adaptive", "adaptive sampler", "env_config.train_tasks_sampler=adaptive"),
    Configuration(
        name="threshold",
        shows="synchronous batches, cut off at 80 % and half a second",
        mode="sync",
        overrides=("env_config.completion_threshold=0.8", "env_config.completion_grace_period=0.5"),
    ),
    Configuration(
        name="complete_prompt",
        shows="the long prompt: memory, progress, intention",
        overrides=("model_config.prompt_version=complete", "policy_config.max_new_tokens=96"),
        own_start=True,
    ),
    Configuration(
        name="thinking",
        shows="a thought before every answer",
        overrides=("model_config.model_type=qwen3-think", "policy_config.max_new_tokens=96"),
        own_start=True,
    ),
)
_MINIWOB = (
    Configuration(name="miniwob_cloning", shows="twenty pages, several steps", family="miniwob", bar=Bar(12.0, final=0.80)),
    Configuration(name="miniwob_grpo", shows="the same by GRPO", family="miniwob", objective="grpo", bar=Bar(20.0, gain=0.15)),
    Configuration(
        name="miniwob_window",
        shows="four rounds in the prompt",
        family="miniwob",
        overrides=("context_config.num_rounds=4",),
        own_start=True,
    ),
)
_GRIDS = tuple(
    Configuration(
        name=f"{family}_{name}",
        shows=f"{what} on {pages}",
        family=family,
        objective=objective,
        overrides=overrides,
        bar=Bar(20.0, final=0.80) if family == "frozen_lake" else LEARNS,
    )
    for family, pages in (("frozen_lake", "lakes of 4 x 4"), ("sokoban", "rooms of 6 x 6"))
    for name, what, objective, overrides in (
        ("by_step", "REINFORCE++, each step by what it earned itself", "reinforce_plus_plus_by_step", ()),
        ("self_imitation", "steps that earned more than the mean, imitated", "self_imitation_by_step", ()),
        ("bi_level_gae", "bi-level GAE, rewards at their turns", "bi_level_gae", ()),
        (
            "turn_gae",
            "GAE between turns, rewards at their turns",
            "bi_level_gae",
            ("objective_config.adv_estimator=turn_gae",),
        ),
        ("grpo", "GRPO, constant normaliser", "grpo", ()),
        (
            "grpo_no_normaliser",
            "GRPO without the normaliser",
            "grpo",
            ("objective_config.length_normaliser=none",),
        ),
    )
)
CONFIGURATIONS = {each.name: each for each in (*_OBJECTIVES, *_LOSSES, *_TERMS, *_MINIWOB, *_GRIDS)}
"""By name. The bars of click_button, cloning and GRPO are the quickstart's own."""
