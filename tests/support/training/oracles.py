"""The formulas of training once more: plain loops over float64 numbers, by other routes than the product's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, fsum, sqrt

import numpy as np

from schemas.objective_config import Aggregation, KlType, ObjectiveConfig
from trainer.advantages import EpisodeRewards

Rows = list[list[float]]
"""One number per token, for each step of an episode."""


def score(episode: EpisodeRewards) -> float:
    return fsum(float(r) for step in episode.rewards for r in step) if episode.rewards else episode.reward


def group(episode: EpisodeRewards, episodes: Sequence[EpisodeRewards]) -> list[float]:
    return [score(other) for other in episodes if other.group == episode.group]


def row(steps: Sequence[np.ndarray]) -> list[float]:
    return [float(x) for step in steps for x in step]


def cut(flat: Sequence[float], episode: EpisodeRewards) -> Rows:
    rows, first = [], 0
    for step in episode.rewards:
        rows.append(list(flat[first : first + len(step)]))
        first += len(step)
    return rows


def constant(value: float, episode: EpisodeRewards) -> Rows:
    return [[value for _ in step] for step in episode.rewards]


def whiten(found: list[Rows]) -> list[Rows]:
    tokens = [x for rows in found for step in rows for x in step]
    mean = fsum(tokens) / max(1, len(tokens))
    variance = fsum((x - mean) ** 2 for x in tokens) / max(1, len(tokens))
    return [[[(x - mean) / sqrt(variance + 1e-8) for x in step] for step in rows] for rows in found]


# advantages -----------------------------------------------------------------------------------------------------------


def grpo(episodes: Sequence[EpisodeRewards], *, by_std: bool = True) -> list[Rows]:
    found = []
    for episode in episodes:
        scores = group(episode, episodes)
        n = len(scores)
        mean = fsum(scores) / n if n > 1 else 0.0
        std = sqrt(fsum((s - mean) ** 2 for s in scores) / (n - 1)) if n > 1 else 1.0
        found.append(constant((score(episode) - mean) / ((std + 1e-6) if by_std else 1.0), episode))
    return found


def rloo(episodes: Sequence[EpisodeRewards]) -> list[Rows]:
    """The reward less the mean of all the others."""
    found = []
    for index, episode in enumerate(episodes):
        others = [score(o) for at, o in enumerate(episodes) if at != index and o.group == episode.group]
        found.append(constant(score(episode) - (fsum(others) / len(others) if others else 0.0), episode))
    return found


def returns_to_go(rewards: Sequence[float], gamma: float) -> list[float]:
    n = len(rewards)
    return [fsum(gamma ** (k - t) * rewards[k] for k in range(t, n)) for t in range(n)]


def reinforce_plus_plus(episodes: Sequence[EpisodeRewards], *, gamma: float, baseline: bool) -> list[Rows]:
    found = []
    for episode in episodes:
        rewards = row(episode.rewards)
        scores = group(episode, episodes)
        if baseline and len(scores) > 1 and rewards:
            rewards[-1] -= fsum(scores) / len(scores)
        found.append(cut(returns_to_go(rewards, gamma), episode))
    return whiten(found)


def remax(episodes: Sequence[EpisodeRewards]) -> list[Rows]:
    found = []
    for episode in episodes:
        greedy = [score(other) for other in episodes if other.group == episode.group and other.greedy]
        if episode.greedy or not greedy:
            found.append(constant(0.0, episode))
            continue
        later = returns_to_go(row(episode.rewards), 1.0)
        found.append(cut([x - fsum(greedy) / len(greedy) for x in later], episode))
    return found


def exponential_average(rewards: Sequence[float], values: Sequence[float], gamma: float, lam: float) -> list[float]:
    """GAE by its definition: the discounted sum of all later temporal differences."""
    n = len(rewards)
    deltas = [rewards[t] + (gamma * values[t + 1] if t + 1 < n else 0.0) - values[t] for t in range(n)]
    return [fsum((gamma * lam) ** (k - t) * deltas[k] for k in range(t, n)) for t in range(n)]


def plus_values(advantages: list[Rows], episodes: Sequence[EpisodeRewards]) -> list[Rows]:
    return [
        cut([a + v for a, v in zip([x for step in rows for x in step], row(episode.values), strict=True)], episode)
        for rows, episode in zip(advantages, episodes, strict=True)
    ]


def gae(episodes: Sequence[EpisodeRewards], *, gamma: float, lam: float) -> tuple[list[Rows], list[Rows]]:
    plain = [cut(exponential_average(row(e.rewards), row(e.values), gamma, lam), e) for e in episodes]
    return whiten(plain), plus_values(plain, episodes)


def bi_level_gae(
    episodes: Sequence[EpisodeRewards], *, gamma: float, lam: float, high_level_gamma: float
) -> tuple[list[Rows], list[Rows]]:
    plain = []
    for episode in episodes:
        turns = exponential_average(
            [float(step[-1]) for step in episode.rewards], [float(step[-1]) for step in episode.values], high_level_gamma, lam
        )
        rows = []
        for rewards, values, turn in zip(episode.rewards, episode.values, turns, strict=True):
            end = len(rewards) - 1
            deltas = [float(rewards[t] + gamma * values[t + 1] - values[t]) for t in range(end)]
            rows.append(
                [
                    fsum((gamma * lam) ** (k - t) * deltas[k] for k in range(t, end)) + (gamma * lam) ** (end - t) * turn
                    for t in range(end + 1)
                ]
            )
        plain.append(rows)
    return whiten(plain), plus_values(plain, episodes)


# losses ---------------------------------------------------------------------------------------------------------------


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


def kl(logprob: float, reference: float, kind: KlType) -> float:
    d = logprob - reference
    if kind == "kl":
        return d
    if kind == "abs":
        return d if d > 0 else -d
    if kind == "mse":
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


def near(s: Sequence64, t: int, config: ObjectiveConfig) -> float:
    """The ratio that the loss keeps near 1."""
    old = s.behaviour[t] if config.loss_type == "clipped" else s.proximal[t]
    return exp(s.logprobs[t] - old)


def token_loss(s: Sequence64, t: int, config: ObjectiveConfig) -> float:
    weight = exp(s.proximal[t] - s.behaviour[t])
    match config.loss_type:
        case "behaviour_cloning":
            loss = -float(s.logprobs[t])
        case "weighted_cloning":
            loss = surrogate(near(s, t, config), 1.0, config) * min(weight, config.importance_weight_cap)
        case "clipped":
            loss = surrogate(near(s, t, config), float(s.advantages[t]), config)
        case "decoupled":
            kept = weight <= config.behaviour_weight_cap
            loss = surrogate(near(s, t, config), float(s.advantages[t]), config) * weight if kept else 0.0
        case "truncated":
            loss = surrogate(near(s, t, config), float(s.advantages[t]), config) * min(weight, config.importance_weight_cap)
    loss += config.kl_loss_coef * kl(float(s.logprobs[t]), float(s.reference[t]), config.kl_loss_type)
    return loss - config.entropy_coeff * float(s.entropies[t])


def is_stopped(s: Sequence64, config: ObjectiveConfig) -> bool:
    trained = [t for t in range(len(s.mask)) if s.mask[t]]
    if not config.early_stop_imp_ratio or config.loss_type == "behaviour_cloning" or not trained:
        return False
    return fsum(near(s, t, config) for t in trained) / len(trained) > config.early_stop_imp_ratio


def step_loss(sequences: Sequence[Sequence64], config: ObjectiveConfig) -> float:
    """Of one optimizer step, from its definition: no weights, no micro-batches, no ranks."""

    def tokens(s: Sequence64) -> list[float]:
        gone = is_stopped(s, config)
        return [0.0 if gone else token_loss(s, t, config) for t in range(len(s.mask)) if s.mask[t]]

    return aggregated([tokens(s) for s in sequences], config.loss_agg_mode, config.loss_scale_factor)


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
    return aggregated(found, mode, 1.0)


def aggregated(losses: Sequence[Sequence[float]], mode: Aggregation, scale_factor: float) -> float:
    """Of the trained tokens of each sequence."""
    some = [sequence for sequence in losses if sequence]
    if not some:
        return 0.0
    sums = [fsum(sequence) for sequence in some]
    match mode:
        case "token-mean":
            return fsum(sums) / sum(len(sequence) for sequence in some)
        case "seq-mean-token-sum":
            return fsum(sums) / len(some)
        case "seq-mean-token-mean":
            return fsum(total / len(sequence) for total, sequence in zip(sums, some, strict=True)) / len(some)
        case "seq-mean-token-sum-norm":
            return fsum(total / scale_factor for total in sums) / len(some)


def slopes(function: Callable[[np.ndarray], float], at: np.ndarray, width: float = 1e-5) -> np.ndarray:
    """The gradient by central differences."""
    found = np.zeros(len(at))
    for index in range(len(at)):
        step = np.zeros(len(at))
        step[index] = width
        found[index] = (function(at + step) - function(at - step)) / (2 * width)
    return found
