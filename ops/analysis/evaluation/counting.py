"""From stored episodes to the figures of an evaluation."""

from collections import Counter
from dataclasses import dataclass, field

from bus.codec import decode
from judges.endpoint.port import Answer
from judges.rubric.accounts import cost_of
from ops.analysis.evaluation.estimators import Tries, estimates
from ops.analysis.evaluation.plan import Plan
from ops.analysis.evaluation.result import FORMAT, Costs, EvaluationResult, Group
from ops.analysis.report.causes import cause_of
from ops.analysis.report.episode import ReportedEpisode, reported
from ops.analysis.report.labels import EVAL
from ops.analysis.report.report import Report
from ops.analysis.report.success import Tallies, Tally
from ops.archive.episodes import StoredEpisode
from schemas.config import Config
from schemas.ids import TaskId
from schemas.messages import StepRequest


@dataclass
class Counted:
    """Grows by one episode at a time."""

    report: Report
    tries: dict[TaskId, Tries] = field(default_factory=dict)
    unscored: Counter[str] = field(default_factory=Counter)
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
        known, scored = self.tries.get(one.task.task, Tries(0, 0)), one.score
        if scored is None:
            found = cause_of(one.trajectory, one.judgement)
            self.unscored[found[0] if found else "not judged"] += 1
        successes = known.successes + (scored is not None and scored.success)
        self.tries[one.task.task] = Tries(successes, known.scored + (scored is not None))

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


def result_of(counted: Counted, plan: Plan) -> EvaluationResult:
    report = counted.report
    tally = report.success.overall.get(EVAL, Tally())
    found = estimates(list(counted.tries.values()), plan.repeat, plan.seed)
    spreads = report.usage.spreads().get(EVAL, {})
    means = {name: spread.mean for name, spread in spreads.items()}
    low, high = tally.success.interval or (None, None)
    return EvaluationResult(
        format=FORMAT,
        model=plan.model,
        tasks_file=plan.tasks_file.name,
        tasks_sha256=plan.tasks_sha256,
        recipe=plan.recipe,
        rubric=plan.config.bus_config.trained_rubric,
        settings=dict(plan.settings),
        repeat=plan.repeat,
        seed=plan.seed,
        num_tasks=plan.num_tasks,
        num_planned=plan.num_episodes,
        num_episodes=tally.num_scored,
        num_successes=tally.num_successes,
        success=tally.success.value,
        low=low,
        high=high,
        reward=tally.reward,
        unscored=dict(counted.unscored),
        pass_at=found.pass_at,
        pass_all=found.pass_all,
        mean_steps=means.get("steps"),
        mean_prompt_tokens=means.get("prompt_tokens"),
        mean_completion_tokens=means.get("completion_tokens"),
        mean_seconds=means.get("total_s"),
        costs=counted.costs(plan.config),
        by_difficulty=_groups(report.success.by_difficulty),
        by_site=_groups(report.success.by_site),
        tasks={str(task): counted.tries[task] for task in sorted(counted.tries)},
    )


def _groups(groups: dict[str, Tallies]) -> dict[str, Group]:
    tallies = {label: found[EVAL] for label, found in groups.items() if EVAL in found}
    return {
        label: Group(num_successes=tally.num_successes, num_scored=tally.num_scored, num_episodes=tally.num_episodes)
        for label, tally in sorted(tallies.items())
    }
