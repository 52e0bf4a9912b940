"""Rules that turn losses as they are here into those of a peer: of the inputs, or of the outcome."""

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np
import torch

from tests.numeric.cases import Case, Outcome
from tests.numeric.losses import targets_of
from tests.numeric.peer_settings import changes, rejections
from trainer.objective.rejection import rejected
from trainer.token_losses import TokenTargets
from trainer.token_losses.sequences import sequence_means


def times(factor: Callable[[Case], float]) -> Callable[[Case, Outcome], Outcome]:
    return lambda case, ours: {name: found * factor(case) for name, found in ours.items()}


def num_tokens(case: Case) -> float:
    return float(case.column("mask").sum())


def num_sequences(case: Case) -> int:
    return sum(any(row["mask"]) for row in case.rows)


def share_of_sequences(case: Case) -> float:
    """That have a trained token."""
    return num_sequences(case) / len(case.rows)


def tokens_over_kept(case: Case) -> float:
    targets = targets_of(case)
    if case.piece == "reinforce":
        ((level, kind, low, high),) = rejections(case)
        gone = rejected(_log_ratios(case, targets), targets, level, kind, low=low, high=high)
    else:
        gone = (targets.proximal - targets.behaviour).exp() > case.settings["behave_weight_threshold"]
    return float(targets.trained.sum() / targets.trained[~gone].sum())


def is_far(case: Case) -> bool:
    """Whether a ratio is beyond 20 nats."""
    return case.has("advantages") and bool(_log_ratios(case, targets_of(case)).abs().max() > 20)


def held_at(bound: float) -> Callable[[Case, Outcome], Outcome]:
    """Log-ratios are held to `bound` from above, not to 20: that changes what tokens with A < 0 cost."""

    def turned(case: Case, ours: Outcome) -> Outcome:
        targets = targets_of(case, changes(case).get("loss_agg_mode", "token-mean"))
        d = _log_ratios(case, targets)
        d = sequence_means(d, targets) if case.piece == "gspo" else d
        size = (-targets.advantages * targets.weights).clamp(min=0.0)
        here, there = (size * d.clamp(max=most).exp() for most in (20.0, bound))
        gradient = (there * (d <= bound) - here * (d <= 20.0)).numpy()
        return {"loss": ours["loss"] + float((there - here).sum()), "gradient": ours["gradient"] + gradient}

    return turned


def by_score_function(case: Case, ours: Outcome) -> Outcome:
    """d(-A rho) = -A rho d(log pi): the gradient times log pi is the loss, and the cap a factor of both."""
    unheld = held_at(inf)(case, ours)["gradient"]
    ratios = _log_ratios(case, targets_of(case)).exp().numpy()
    gradient = unheld * np.minimum(ratios, case.settings["clip_ratio_c"]) / ratios
    return {"loss": np.array([gradient @ case.column("logprobs")]), "gradient": gradient}


def mean_advantages(case: Case) -> Case:
    """Those of a sequence are their mean."""
    ends = np.cumsum([len(row["mask"]) for row in case.rows])[:-1]
    means = np.split(_mean_of_sequence(case, case.column("advantages")), ends)
    return replace(case, rows=[{**row, "advantages": mean.tolist()} for row, mean in zip(case.rows, means, strict=True)])


def mean_gradients(case: Case, ours: Outcome) -> Outcome:
    return {**ours, "gradient": _mean_of_sequence(case, ours["gradient"])}


def held_to_ten(_: Case, ours: Outcome) -> Outcome:
    values = ours["token_values"]
    return {"token_values": values.clip(-10, 10), "gradient": ours["gradient"] * (np.abs(values) <= 10)}


def exchanged(case: Case) -> Case:
    return replace(case, rows=[{**row, "proximal": row["behaviour"], "behaviour": row["proximal"]} for row in case.rows])


def inverse_weights(_: Case, ours: Outcome) -> Outcome:
    kept = ours["kept"] > 0
    return {**ours, "weights": np.divide(1.0, ours["weights"], where=kept, out=np.zeros(len(kept)))}


def _log_ratios(case: Case, targets: TokenTargets) -> torch.Tensor:
    return torch.from_numpy(case.column("logprobs")) - targets.behaviour


def _mean_of_sequence(case: Case, numbers: np.ndarray) -> np.ndarray:
    targets = targets_of(case)
    means: np.ndarray = (sequence_means(torch.from_numpy(numbers), targets) * targets.trained).numpy()
    return means
