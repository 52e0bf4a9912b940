"""Defines judgements: what a trajectory was worth, and what judges asked and found on the way."""

import enum

from schemas.ids import EpisodeId, WorkerId
from schemas.messages.episode import Trajectory
from schemas.messages.structs import Message, Struct
from schemas.messages.task import Split
from schemas.ranges import Amount, Count, Episode, Group, Moment, Real, Step, Token, Worker


class Verdict(enum.Enum):
    SUCCESS = "success"
    FAILURE = "failure"
    EXCLUDED = "excluded"
    """There was nothing to judge (a failed or cancelled episode): trained on by no one."""
    ERROR = "error"
    """No verdict could be had after every retry: neither success nor failure, trained on by no one."""


class StageVerdict(Struct, frozen=True):
    """One stage of a judge."""

    stage: str
    passed: bool
    reasoning: str = ""
    votes: tuple[bool, ...] = ()
    """Where a question was asked several times."""
    evidence: tuple[Step, ...] = ()
    """Steps whose screenshots a model was shown."""

    @property
    def agreement(self) -> float:
        """Share of the votes that agree with the verdict; 1 where there was no vote."""
        return sum(vote == self.passed for vote in self.votes) / len(self.votes) if self.votes else 1.0


class RewardPart(Struct, frozen=True):
    """One named part of a reward."""

    name: str
    value: Real
    """Of the whole episode, `steps` included."""
    steps: tuple[Real, ...] = ()
    """What each step earned of it; what is missing was earned by the episode's end."""


class StageUsage(Struct, frozen=True):
    """What the questions of one kind took."""

    stage: str
    model: str
    num_calls: Count = 0
    """Answers that were had, also those without a verdict."""
    num_failures: Count = 0
    """Requests without an answer."""
    prompt_tokens: Count = 0
    """The cached ones included."""
    cached_tokens: Count = 0
    completion_tokens: Count = 0
    cost: Amount = 0.0
    """In the currency of `openai_config.prices`; 0 for a model without a price."""
    seconds: Amount = 0.0


class AskedQuestion(Struct, frozen=True):
    """One question whose answer held a verdict."""

    stage: str
    model: str
    temperature: Amount | None = None
    """As sent; None: the endpoint's own."""
    screenshots: tuple[Step, ...] = ()
    """Steps whose screenshots were shown, in order."""


class JudgeProtocol(Struct, frozen=True):
    """How one judge asked models. Their addresses and other settings are the run's configuration."""

    judge: str
    prompts: str
    """Name of their version."""
    digest: str
    """sha256 of the prompts' files."""
    questions: tuple[AskedQuestion, ...] = ()
    """In no order that counts: many are asked at once."""


class Judgement(Message, frozen=True, tag="judgement/1"):
    """What a trajectory was worth. Create-only: at most one per episode and rubric."""

    episode: Episode
    group: Group
    split: Split
    rubric: Token
    """Judge name and version: part of the identity."""
    verdict: Verdict
    reward: Real | None
    """None when nothing may be trained on it (`verdict` excluded or error)."""
    trajectory: Trajectory
    stages: tuple[StageVerdict, ...] = ()
    step_rewards: tuple[Real, ...] = ()
    """What each step earned of the reward; empty when all of it was earned by the episode's end."""
    judge: Worker = WorkerId("")
    judged_s: Amount = 0.0
    error: str = ""
    parts: tuple[RewardPart, ...] = ()
    """Sum up to the reward, their steps to `step_rewards`."""
    usage: tuple[StageUsage, ...] = ()
    """Of model calls, by stage and model."""
    blocked: bool = False
    """The site blocked the agent: excluded, and left out of training for a while."""
    protocols: tuple[JudgeProtocol, ...] = ()
    """Of every judge that asked models."""

    def contradiction(self) -> str:
        task = self.trajectory.task
        if (self.episode, self.group, self.split) != (task.episode, task.group, task.split):
            return f"a judgement of {self.episode} holds the trajectory of {task.episode}"
        if len(self.step_rewards) > self.trajectory.num_observations:
            return f"{len(self.step_rewards)} step_rewards of {self.trajectory.num_steps} steps"
        return self.trajectory.contradiction()


class JudgeCall(Message, frozen=True, tag="call/1"):
    """One answer of a judge's model. A judge that takes a trajectory over asks nothing again that stands here."""

    episode: Episode
    rubric: Token
    stage: str
    question: Token
    """Digest of everything that was asked, the model and the screenshots included."""
    answer: Count
    """0, and more for answers after one without a verdict."""
    model: str
    text: str
    accepted: bool
    """Whether it holds a verdict."""
    finish_reason: str = ""
    screenshots: tuple[Step, ...] = ()
    """Steps whose screenshots were shown, in order."""
    temperature: Amount | None = None
    """As sent; None: the endpoint's own."""
    num_failures: Count = 0
    """Requests without an answer before this one."""
    prompt_tokens: Count = 0
    cached_tokens: Count = 0
    completion_tokens: Count = 0
    cost: Amount = 0.0
    seconds: Amount = 0.0
    judge: Worker = WorkerId("")


class JudgeSpending(Message, frozen=True, tag="spending/1"):
    """What the calls of a run's judges came to, up to a place on CALLS, from which they age out."""

    calls_seq: Count
    """Of the last one that is counted."""
    num_calls: Count
    cost: Amount = 0.0
    dearest: Amount = 0.0
    """The highest cost of one call."""


class SiteBlock(Message, frozen=True, tag="block/1"):
    """A site is left out of training. The newest of a site counts."""

    site: str
    """Host without `www.`, or a suite's name."""
    until: Amount
    """Unix seconds by the writer's clock, as `at`: what counts is how long after `at`, and not at all where it is before."""
    reason: str = ""
    episode: EpisodeId = EpisodeId("")
    """That found it blocked."""
    at: Moment = 0.0
    """Unix seconds by the writer's clock."""
