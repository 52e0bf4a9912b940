"""From stored episodes to the figures of an evaluation."""

from collections import Counter
from dataclasses import dataclass, field

from bus.codec import decode
from judges.endpoint.port import Answer
from judges.rubric.accounts import cost_of
from ops.analysis.evaluation.causes import WORDS, cause_of
from ops.analysis.evaluation.estimators import Tries
from ops.analysis.evaluation.plan import Plan
from ops.analysis.evaluation.protocol import Apart
from ops.analysis.evaluation.result import FORMAT, Costs, EvaluationResult, TaskDetail
from ops.analysis.evaluation.shares import with_shares
from ops.analysis.report.episode import ReportedEpisode, reported
from ops.analysis.report.labels import EVAL, difficulty_of, distribution_of, published_split_of, site_label
from ops.analysis.report.report import Report
from ops.analysis.report.success import Tally
from ops.archive.episodes import StoredEpisode
from schemas.config import Config
from schemas.ids import TaskId
from schemas.messages import StepRequest, Task

_NO_TRIES = Tries(0, 0)


@dataclass
class Counted:
    """Grows by one episode at a time."""

    report: Report
    apart: Apart = Apart()
    tries: dict[TaskId, Tries] = field(default_factory=dict)
    blocked: Counter[str] = field(default_factory=Counter)
    invalid: Counter[str] = field(default_factory=Counter)
    known: dict[TaskId, Task] = field(default_factory=dict)
    """A task as it was played."""
    apart_of: dict[TaskId, Counter[str]] = field(default_factory=dict)
    """Of a task, by cause."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def add_stored(self, stored: StoredEpisode) -> None:
        self.add(reported(stored, self.report.rubric))
        for record in stored.records:
            if ".act." in record.subject_suffix and isinstance(answer := decode(record.data), StepRequest):
                self.pay(answer)

    def add(self, one: ReportedEpisode) -> None:
        self.report.add_reported(one)
        task, cause = one.task.task, cause_of(one)
        before = self.tries.setdefault(task, _NO_TRIES)
        self.known[task] = one.task
        aside = self.apart.of(cause) if cause is not None else None
        if cause is None or aside is None:
            success = one.score is not None and one.score.success
            self.tries[task] = Tries(before.successes + success, before.scored + 1)
            return
        (self.blocked if aside == "blocked" else self.invalid)[WORDS[cause]] += 1
        self.apart_of.setdefault(task, Counter())[WORDS[cause]] += 1

    def pay(self, answer: StepRequest) -> None:
        """Every answer cost its tokens, those of attempts that were given up too."""
        self.prompt_tokens += answer.num_prompt
        self.completion_tokens += answer.num_completion
        self.cached_tokens += answer.usage.cached if answer.usage else 0

    def costs(self, config: Config) -> Costs:
        policy = config.policy_config
        price = config.openai_config.prices.get(policy.base_model) if policy.engine == "openai" else None
        answer = Answer(
            text="",
            finish_reason="",
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
        )
        judged = self.report.judging.rubrics.get(self.report.rubric)
        return Costs(
            policy=None if price is None else cost_of(answer, price),
            judge=judged.spending.cost if judged else 0.0,
            policy_prompt_tokens=self.prompt_tokens,
            policy_cached_tokens=self.cached_tokens,
            policy_completion_tokens=self.completion_tokens,
            judge_calls=judged.spending.num_calls if judged else 0,
        )

    def detail(self, task: TaskId) -> TaskDetail:
        of = self.known[task]
        return TaskDetail(
            instruction=of.instruction,
            site=site_label(of),
            difficulty=difficulty_of(of),
            distribution=distribution_of(of),
            published_split=published_split_of(of),
            seen=self.report.seen.label_of(of),
            apart=dict(self.apart_of.get(task, Counter())),
        )


def result_of(counted: Counted, plan: Plan) -> EvaluationResult:
    num_ended = sum(tries.scored for tries in counted.tries.values()) + counted.blocked.total() + counted.invalid.total()
    missing = {WORDS["missing"]: plan.num_episodes - num_ended} if num_ended < plan.num_episodes else {}
    spreads = counted.report.usage.spreads().get(EVAL, {})
    means = {name: spread.mean for name, spread in spreads.items()}
    tasks = sorted(counted.tries)
    return with_shares(
        EvaluationResult(
            format=FORMAT,
            model=plan.model,
            protocol=plan.stamp,
            tasks_file=plan.tasks_file.name,
            tasks_sha256=plan.tasks_sha256,
            recipe=plan.recipe,
            rubric=plan.config.bus_config.trained_rubric,
            settings=dict(plan.settings),
            repeat=plan.repeat,
            seed=plan.seed,
            seeds=(plan.seed,),
            num_tasks=plan.num_tasks,
            num_planned=plan.num_episodes,
            reward=counted.report.success.overall.get(EVAL, Tally()).reward,
            blocked=dict(counted.blocked),
            invalid=dict(counted.invalid) | missing,
            mean_steps=means.get("steps"),
            mean_prompt_tokens=means.get("prompt_tokens"),
            mean_completion_tokens=means.get("completion_tokens"),
            mean_seconds=means.get("total_s"),
            costs=counted.costs(plan.config),
            trained_on=tuple(file.name for file in plan.trained_on),
            tasks={str(task): counted.tries[task] for task in tasks},
            task_details={str(task): counted.detail(task) for task in tasks},
        )
    )
