"""The losses once more: plain loops over float64 numbers, by other routes than the product's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, fsum
from typing import Any

import numpy as np

from schemas.objective_config import Aggregation, ObjectiveConfig


@dataclass(frozen=True, eq=False)
class Sequence64:
    """One sequence of an optimizer step: float64, (tokens,) each."""

    mask: np.ndarray
    logprobs: np.ndarray
    entropies: np.ndarray
    advantages: np.ndarray
    behaviour: np.ndarray
    proximal: np.ndarray
    reference: np.ndarray
    values: np.ndarray
    returns: np.ndarray
    staleness: np.ndarray
    episode: Any = "e0"


def kl(logprob: float, reference: float, kind: str) -> float:
    d = logprob - reference
    match kind.removesuffix("+"):
        case "kl":
            return d
        case "abs":
            return d if d > 0 else -d
        case "mse":
            return d * d / 2
    d = max(-20.0, min(20.0, d))
    return min(10.0, exp(-d) - 1.0 + d)


def surrogate(ratio: float, advantage: float, config: ObjectiveConfig) -> float:
    """By cases: no gain beyond 1 + high for what was good, none below 1 - low for what was bad, no loss beyond c for that."""
    if advantage >= 0:
        return -advantage * min(ratio, 1 + config.clip_ratio_high)
    bad = max(ratio, 1 - config.clip_ratio_low)
    if config.clip_ratio_c:
        bad = min(bad, config.clip_ratio_c)
    return -advantage * bad


@dataclass(frozen=True)
class Token:
    """Token `t` of a sequence. `held`: the sequence at the place where gradients are taken, for what none passes through."""

    s: Sequence64
    held: Sequence64
    t: int
    config: ObjectiveConfig

    def proximal(self, t: int) -> float:
        if self.config.proximal == "forward":
            return float(self.s.proximal[t])
        age, behaviour = float(self.s.staleness[t]), float(self.s.behaviour[t])
        return behaviour + (1 - 1 / (age + 1)) * (float(self.held.logprobs[t]) - behaviour)

    @property
    def trained(self) -> list[int]:
        return [t for t in range(len(self.s.mask)) if self.s.mask[t]]

    @property
    def near(self) -> float:
        """The ratio that the loss keeps near 1."""
        s, held, t = self.s, self.held, self.t
        match self.config.loss_type:
            case "clipped" | "dppo_tv":
                return exp(s.logprobs[t] - s.behaviour[t])
            case "cispo":
                return exp(held.logprobs[t] - s.behaviour[t])
            case "gspo":
                mean = fsum(held.logprobs[u] - s.behaviour[u] for u in self.trained) / len(self.trained)
                return exp(mean) * exp(s.logprobs[t] - held.logprobs[t])
        return exp(s.logprobs[t] - self.proximal(t))

    @property
    def weight(self) -> float:
        logs = [self.proximal(u) - float(self.s.behaviour[u]) for u in self.trained]
        match self.config.importance_weight_level:
            case "token":
                return exp(self.proximal(self.t) - self.s.behaviour[self.t])
            case "sequence":
                return exp(fsum(logs))
            case "sequence-mean":
                return exp(fsum(logs) / len(logs))

    @property
    def plain(self) -> float:
        """The policy loss."""
        config, t = self.config, self.t
        near, advantage = self.near, float(self.s.advantages[t])
        match config.loss_type:
            case "behaviour_cloning":
                return -float(self.s.logprobs[t])
            case "reinforce":
                return -advantage * float(self.s.logprobs[t])
            case "weighted_cloning":
                return surrogate(near, 1.0, config) * min(self.weight, config.importance_weight_cap)
            case "clipped" | "gspo":
                return surrogate(near, advantage, config)
            case "decoupled":
                return surrogate(near, advantage, config) * (
                    self.weight if self.weight <= config.behaviour_weight_cap else 0.0
                )
            case "truncated":
                return surrogate(near, advantage, config) * min(self.weight, config.importance_weight_cap)
            case "cispo":
                held = max(1 - config.clip_ratio_low, min(1 + config.clip_ratio_high, near))
                return -held * advantage * float(self.s.logprobs[t])
            case "dppo_tv":
                moved = exp(self.held.logprobs[t]) - exp(self.s.behaviour[t])
                low, high = config.settings.get("tv_low", 0.2), config.settings.get("tv_high", 0.2)
                gone = moved > high if advantage > 0 else moved < -low
                apart = float(self.s.logprobs[t] - self.s.behaviour[t])
                return (0.0 if gone else -advantage * near) + config.settings.get("tv_kl_coef", 1e-3) * apart**2
        raise AssertionError(config.loss_type)

    @property
    def loss(self) -> float:
        config, t, reference = self.config, self.t, float(self.s.reference[self.t])
        apart = kl(float(self.s.logprobs[t]), reference, config.kl_loss_type)
        if config.kl_loss_type.endswith("+"):
            now, held = (kl(float(x.logprobs[t]), reference, "mse") for x in (self.s, self.held))
            apart = kl(float(self.held.logprobs[t]), reference, config.kl_loss_type) + now - held
        return self.plain + config.kl_loss_coef * apart - config.entropy_coeff * float(self.s.entropies[t])


WITHOUT_RATIO = ("behaviour_cloning", "reinforce")


def is_stopped(tokens: Sequence[Token], config: ObjectiveConfig) -> bool:
    if not config.early_stop_imp_ratio or config.loss_type in WITHOUT_RATIO or not tokens:
        return False
    return fsum(token.near for token in tokens) / len(tokens) > config.early_stop_imp_ratio


def is_rejected(token: Token, config: ObjectiveConfig) -> bool:
    level, kind = config.rejection_level, config.rejection_kind
    if level == "none" or config.loss_type in WITHOUT_RATIO:
        return False

    def log_ratio(t: int) -> float:
        proximal = config.loss_type in ("decoupled", "truncated", "weighted_cloning")
        return (token.proximal(t) if proximal else float(token.held.logprobs[t])) - float(token.s.behaviour[t])

    def measure(d: float) -> float:
        return {"k1": d, "k2": d * d / 2, "k3": exp(d) - 1 - d}[kind]

    found = [measure(log_ratio(t)) for t in (token.trained if level != "token" else [token.t])]
    highest, lowest = max(found), min(found)
    if level == "sequence-sum":
        highest = lowest = fsum(found)
    elif level == "sequence-mean":
        highest = lowest = fsum(found) / len(found)
    if kind == "k1":
        return exp(highest) > config.rejection_high or exp(lowest) < config.rejection_low
    return highest > config.rejection_high


def step_loss(sequences: Sequence[Sequence64], config: ObjectiveConfig, held: Sequence[Sequence64] | None = None) -> float:
    """Of one optimizer step, from its definition: no weights, no micro-batches, no ranks."""

    def losses(s: Sequence64, held: Sequence64) -> list[float]:
        tokens = [Token(s, held, t, config) for t in range(len(s.mask)) if s.mask[t]]
        gone = is_stopped(tokens, config)
        return [0.0 if gone or is_rejected(token, config) else token.loss for token in tokens]

    found = [losses(s, h) for s, h in zip(sequences, held or sequences, strict=True)]
    return aggregated(found, config.loss_agg_mode, config.loss_scale_factor, [s.episode for s in sequences])


def value_loss(sequences: Sequence[Sequence64], critic: np.ndarray, clip: float, mode: Aggregation) -> float:
    """`critic`: its present values of all tokens, those that are not trained on included."""
    found, at = [], 0
    for s in sequences:
        losses = []
        for t in range(len(s.mask)):
            v, old, target = float(critic[at]), float(s.values[t]), float(s.returns[t])
            at += 1
            held = max(old - clip, min(old + clip, v)) if clip else v
            if s.mask[t]:
                losses.append(0.5 * max((v - target) ** 2, (held - target) ** 2))
        found.append(losses)
    return aggregated(found, mode, 1.0, [s.episode for s in sequences])


def aggregated(
    losses: Sequence[Sequence[float]], mode: Aggregation, scale_factor: float, episodes: Sequence[str] = ()
) -> float:
    """Of the trained tokens of each sequence, which are those of these episodes."""
    some = [sequence for sequence in losses if sequence]
    if not some:
        return 0.0
    sums = [fsum(sequence) for sequence in some]
    if mode.startswith("traj"):
        return over_trajectories(losses, mode, scale_factor, episodes)
    match mode:
        case "token-mean":
            return fsum(sums) / sum(len(sequence) for sequence in some)
        case "seq-mean-token-sum":
            return fsum(sums) / len(some)
        case "seq-mean-token-mean":
            return fsum(total / len(sequence) for total, sequence in zip(sums, some, strict=True)) / len(some)
        case _:
            return fsum(total / scale_factor for total in sums) / len(some)


def over_trajectories(
    losses: Sequence[Sequence[float]], mode: Aggregation, scale_factor: float, episodes: Sequence[str]
) -> float:
    found = []
    for name in sorted(set(episodes)):
        mine = [sequence for sequence, episode in zip(losses, episodes, strict=True) if episode == name and sequence]
        tokens = [x for sequence in mine for x in sequence]
        if not tokens:
            continue
        match mode:
            case "traj-mean-token-sum":
                found.append(fsum(tokens))
            case "traj-mean-token-mean":
                found.append(fsum(tokens) / len(tokens))
            case "traj-mean-token-sum-norm":
                found.append(fsum(tokens) / scale_factor)
            case _:
                found.append(fsum(fsum(sequence) / len(sequence) for sequence in mine))
    return fsum(found) / len(found)


def slopes(function: Callable[[np.ndarray], float], at: np.ndarray, width: float = 1e-5) -> np.ndarray:
    """The gradient by central differences."""
    found = np.zeros(len(at))
    for index in range(len(at)):
        step = np.zeros(len(at))
        step[index] = width
        found[index] = (function(at + step) - function(at - step)) / (2 * width)
    return found
