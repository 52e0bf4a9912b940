"""Adds up what episodes took: steps, tokens, and seconds by phase."""

from dataclasses import dataclass, field

from ops.analysis.report.episode import ReportedEpisode
from ops.statistics.spread import Spread, Values

OF_AN_EPISODE = (
    "steps",
    "prompt_tokens",
    "completion_tokens",
    "reset_s",
    "observe_s",
    "policy_s",
    "act_s",
    "total_s",
)
OF_A_STEP = ("step_prompt_tokens", "step_completion_tokens", "step_queued_s", "step_generated_s")
FIGURES = OF_AN_EPISODE + OF_A_STEP


@dataclass(slots=True)
class Usage:
    """By kind of episode, then by figure. Tokens are those of the steps that are still stored."""

    by_kind: dict[str, dict[str, Values]] = field(default_factory=dict)

    def add(self, one: ReportedEpisode) -> None:
        values = self.by_kind.setdefault(one.kind, {name: Values() for name in FIGURES})
        trajectory, timings = one.trajectory, one.trajectory.timings
        values["steps"].add(trajectory.num_steps)
        # An episode that a feeder cancelled before anybody began it spent no time with anybody.
        if trajectory.worker:
            for phase in ("reset_s", "observe_s", "policy_s", "act_s", "total_s"):
                values[phase].add(getattr(timings, phase))
        if not one.is_whole:
            return
        requests = [step.request for step in one.steps]
        values["prompt_tokens"].add(sum(request.num_prompt for request in requests))
        values["completion_tokens"].add(sum(request.num_completion for request in requests))
        for request in requests:
            values["step_prompt_tokens"].add(request.num_prompt)
            values["step_completion_tokens"].add(request.num_completion)
            values["step_queued_s"].add(request.queued_s)
            values["step_generated_s"].add(request.generated_s)

    def spreads(self) -> dict[str, dict[str, Spread]]:
        return {kind: {name: values.spread() for name, values in figures.items()} for kind, figures in self.by_kind.items()}
