"""The configuration of judging: which judge, what it may cost, and the endpoints of its models."""

from dataclasses import dataclass, field
from typing import Literal

from schemas.ids import subject_token
from schemas.requirement import require


@dataclass(frozen=True, kw_only=True)
class Composite:
    """A judge made of others."""

    combine: Literal["all", "any", "weighted"] = "all"
    """`all` and `any` of the verdicts, or a success when the `weighted` mean of the rewards reaches `threshold`."""
    parts: dict[str, float] = field(default_factory=dict)
    """Names of judges, with their weights (which `all` and `any` do not need: write 1). Cheap ones first: `all` stops at the
    first failure, `any` at the first success."""
    threshold: float = 0.5
    """Of `weighted`: mean reward from which on an episode is a success."""

    def __post_init__(self) -> None:
        require(bool(self.parts), "judge_config.composites: parts is empty: write the names of judges, each with a weight")
        for name, weight in self.parts.items():
            require(weight > 0, f"judge_config.composites: the weight of {name} is {weight:g}: write a number above 0")
        require(
            0 < self.threshold <= 1,
            f"judge_config.composites: threshold is {self.threshold:g}: write a mean reward above 0, at most 1",
        )


@dataclass(frozen=True, kw_only=True)
class ShapingConfig:
    """Terms that are taken off the reward of training episodes, each a named part of it; verdicts stay as they are."""

    format: float = 0.0
    """Times the share of steps whose output could not be parsed; borne by those steps."""
    length: float = 0.0
    """Times the share of the step cap that was used; borne by all steps alike."""
    unreadable: float = 0.0
    """Of an episode that `env_config.max_unparsed` ended; borne by its end (OpenWebRL: 1)."""
    last_turn: bool = False
    """All of a reward above 0, where the last step could not be parsed or never ended its thinking; borne by the episode's end
    (OpenWebRL)."""

    def __post_init__(self) -> None:
        for name, weight in vars(self).items():
            require(weight >= 0, f"judge_config.shaping.{name} is {weight:g}: write 0 or more, it is taken off")


@dataclass(frozen=True, kw_only=True)
class JudgeConfig:
    judge: str = "environment_v1"
    """Name and version of the judge, which its judgements carry as their rubric: `environment_v1` (a task's checks, else the
    reward that the page itself gave), `rubric_v1` (a model looks at the evidence, see `openai_config`), a published evaluator
    (`webjudge_v1` and others), `webarena_verified_v1` (that benchmark's evaluators), `answer_exact_v1`, `answer_numeric_v1`,
    `answer_fuzzy_v1`, `milestones_v1`, or one of `composites`."""
    label: str = ""
    """Added to the rubric, so that one judge with two settings can judge one run: `rubric_v1-large`."""
    composites: dict[str, Composite] = field(default_factory=dict)
    """Judges made of others, by name."""
    shaping: ShapingConfig = ShapingConfig()
    prompts: str = ""
    """Folder of prompt files to use instead of those of the judge's version; needs a `label`."""
    webarena_python: str = ""
    """Python in whose environment `webarena_verified_v1` finds the package webarena-verified; empty: the judge's own."""
    num_votes: int = 1
    """Times that each question of the evaluation is asked, by a published evaluator that which decides; the majority counts.
    An odd number."""
    max_evidence_screenshots: int = 48
    """Screenshots that one question of `rubric_v1`'s evaluation shows."""
    max_blocking_screenshots: int = 20
    """Screenshots that its blocking detection shows."""
    max_attempts: int = 5
    """Times that a judge which raises an error is asked, before the error is recorded."""
    max_calls: int = 0
    """Model calls after which the run's judges pause; 0: no limit."""
    max_cost: float = 0.0
    """Cost (in the currency of `openai_config.prices`) at which the run's judges pause; 0: no limit."""
    blocklist_hours: float = 12.0
    """Time that a site which blocked the agent is left out of training; 0: it is not."""

    def __post_init__(self) -> None:
        subject_token(self.name, what="judge_config.judge")
        if self.label:
            subject_token(self.label, what="judge_config.label")
        require(
            not self.prompts or bool(self.label), "judge_config.prompts is set: write a judge_config.label for its judgements"
        )
        require(
            self.num_votes % 2 == 1 and self.num_votes > 0, f"judge_config.num_votes is {self.num_votes}: write 1, 3, 5 ..."
        )
        for name in ("max_evidence_screenshots", "max_blocking_screenshots", "max_attempts"):
            require(getattr(self, name) > 0, f"judge_config.{name} is {getattr(self, name)}: write a number above 0")
        for name in ("max_calls", "max_cost", "blocklist_hours"):
            require(getattr(self, name) >= 0, f"judge_config.{name} is {getattr(self, name):g}: write 0 or more")
        for name in self.composites:
            subject_token(name, what="judge_config.composites")

    @property
    def name(self) -> str:
        """The judge's own name, without the module that it comes from."""
        return self.judge.rpartition(":")[2]

    @property
    def rubric(self) -> str:
        """What the judgements are stored under."""
        return f"{self.name}-{self.label}" if self.label else self.name


@dataclass(frozen=True, kw_only=True)
class QuestionConfig:
    """Who answers one kind of question; what is left empty is as in `openai_config` itself."""

    model: str = ""
    """Empty: that of `openai_config`."""
    openai_api_key_env_var: str = ""
    """Empty: that of `openai_config`, at the same address."""
    base_url: str = ""
    """Empty: that of `openai_config`."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """Of a million tokens, in any one currency."""

    input: float
    output: float
    cached_input: float | None = None
    """Of input tokens that the provider had cached; None: as `input`."""

    def __post_init__(self) -> None:
        for name, price in vars(self).items():
            if price is not None:
                require(price >= 0, f"openai_config.prices: {name} is {price:g}: write 0 or more")


@dataclass(frozen=True, kw_only=True)
class OpenAIConfig:
    """The judges' OpenAI-compatible endpoints."""

    model: str = "gemini-3-flash-preview"
    """The judges' model, for all kinds of question that name none of their own."""
    openai_api_key_env_var: str = "GEMINI_API_KEY"
    """Environment variable that holds the key; an endpoint on this machine needs none."""
    base_url: str = ""
    """Empty: that of the provider whose usual variable holds the key (GEMINI_API_KEY, OPENAI_API_KEY)."""
    keypoint_detection: QuestionConfig = QuestionConfig()
    """Which screenshots are evidence, or how much each tells: a call for each. Where this names no model and would ask Gemini
    for gemini-3-flash-preview, it asks the lighter gemini-2.5-flash-lite."""
    blocking_detection: QuestionConfig = QuestionConfig()
    """Whether the site blocked the agent: one call. Lighter as above."""
    evaluation: QuestionConfig = QuestionConfig()
    """Everything else: criterion B, criterion A for every fact, the reference answer; what a published evaluator asks."""
    timeout_s: float = 120.0
    """Seconds one call may take."""
    patience_s: float = 600.0
    """Seconds that a question waits for an endpoint that is away, overloaded or failing; then there is a judge error."""
    max_answers: int = 4
    """Answers without a verdict (malformed, cut off, filtered, empty) after which its trajectory is a judge error."""
    max_concurrent: int = 32
    """Calls that one judge worker has under way at one endpoint."""
    structured_output: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    """`auto`: the strictest form that the endpoint takes."""
    temperature: float | None = 0.0
    """null: the endpoint's own, for models that take no other."""
    max_completion_tokens: int = 4096
    """Tokens of one answer at most."""
    prices: dict[str, Price] = field(default_factory=dict)
    """By model, for accounting and `judge_config.max_cost`."""

    def __post_init__(self) -> None:
        require(self.model != "", "openai_config.model is empty: write the name of a model")
        for name in ("timeout_s", "max_answers", "max_concurrent", "max_completion_tokens"):
            require(getattr(self, name) > 0, f"openai_config.{name} is {getattr(self, name):g}: write a number above 0")
        if self.temperature is not None:
            require(self.temperature >= 0, f"openai_config.temperature is {self.temperature:g}: write 0 or more, or null")
        require(self.patience_s >= 0, f"openai_config.patience_s is {self.patience_s:g}: write 0 or more")
