"""Rules that turn advantages as they are here into those of a peer: of the inputs, or of the outcome."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from tests.numeric.cases import Case, Outcome


def unbiased(_: Case, ours: Outcome) -> Outcome:
    n = len(ours["advantages"])
    return {**ours, "advantages": ours["advantages"] * sqrt((n - 1) / n)}


def over_deviation(_: Case, ours: Outcome) -> Outcome:
    plain = ours["returns"] - ours["values"]
    factor = sqrt(plain.var() + 1e-8) / (plain.std(ddof=1) + 1e-5)
    return {**ours, "advantages": ours["advantages"] * factor}


def unwhitened(_: Case, ours: Outcome) -> Outcome:
    return {**ours, "advantages": ours["returns"] - ours["values"]}


def larger_epsilon(case: Case, ours: Outcome) -> Outcome:
    stds = _by_token(case, lambda scores: float(np.std(scores, ddof=1)))
    return {**ours, "advantages": ours["advantages"] * (stds + 1e-6) / (stds + 1e-5)}


def nothing_alone(case: Case, ours: Outcome) -> Outcome:
    return {**ours, "advantages": ours["advantages"] * _by_token(case, lambda scores: float(len(scores) > 1))}


def episodes_by_steps(case: Case, ours: Outcome) -> Outcome:
    """An episode of three steps stands three times among the scores of its group."""
    by_std = case.settings["mode"] == "mean_std_norm"
    scores = [sum(map(sum, row["rewards"])) for row in case.rows]

    def part(counts: Sequence[int]) -> np.ndarray:
        found = []
        for row, score in zip(case.rows, scores, strict=True):
            group = [
                other
                for peer, other, count in zip(case.rows, scores, counts, strict=True)
                for _ in range(count)
                if peer["group"] == row["group"]
            ]
            alone = len(group) == 1
            above = score - (0.0 if alone else float(np.mean(group)))
            found.append(above / ((1.0 if alone else float(np.std(group, ddof=1))) + 1e-6) if by_std else above)
        return np.repeat(found, [sum(map(len, row["rewards"])) for row in case.rows])

    by_steps = part([len(row["rewards"]) for row in case.rows])
    return {**ours, "advantages": ours["advantages"] - part([1] * len(case.rows)) + by_steps}


def steps_alone(case: Case) -> Case:
    """Every step is an episode of its own."""
    return replace(case, rows=[{"group": "", "rewards": [step]} for row in case.rows for step in row["rewards"]])


def earned_at_the_end(case: Case) -> Case:
    """Everything is earned by the last token."""

    def moved(rewards: list[list[float]]) -> list[list[float]]:
        zeros = [[0.0] * len(step) for step in rewards]
        zeros[-1][-1] = sum(map(sum, rewards))
        return zeros

    return replace(case, rows=[{**row, "rewards": moved(row["rewards"])} for row in case.rows])


def _by_token(case: Case, value: Callable[[Sequence[float]], float]) -> np.ndarray:
    """Of each token, a value of the scores of its group."""
    scores: dict[str, list[float]] = {}
    for row in case.rows:
        scores.setdefault(row["group"], []).append(sum(map(sum, row["rewards"])))
    lengths = [sum(map(len, row["rewards"])) for row in case.rows]
    return np.repeat([value(scores[row["group"]]) for row in case.rows], lengths)
