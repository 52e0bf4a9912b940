"""The estimators once more: plain loops over float64 numbers, by other routes than the product's."""

from collections.abc import Sequence
from math import fsum, sqrt

import numpy as np

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


def returns_over_steps(
    rewards: Sequence[float], episode: EpisodeRewards, gamma: float, high_level_gamma: float
) -> list[float]:
    """Each later reward by the discounts of the tokens, and of the ends of steps, that lie between."""
    step_of = [number for number, step in enumerate(episode.rewards) for _ in step]
    return [
        fsum(gamma ** (k - t) * high_level_gamma ** (step_of[k] - step_of[t]) * rewards[k] for k in range(t, len(rewards)))
        for t in range(len(rewards))
    ]


def reinforce_plus_plus(
    episodes: Sequence[EpisodeRewards], *, gamma: float, high_level_gamma: float = 1.0, baseline: bool
) -> list[Rows]:
    found = []
    for episode in episodes:
        rewards = row(episode.rewards)
        scores = group(episode, episodes)
        if baseline and len(scores) > 1 and rewards:
            rewards[-1] -= fsum(scores) / len(scores)
        found.append(cut(returns_over_steps(rewards, episode, gamma, high_level_gamma), episode))
    return whiten(found)


def reinforce_plus_plus_by_kind(
    episodes: Sequence[EpisodeRewards], *, gamma: float, high_level_gamma: float = 1.0
) -> list[Rows]:
    """Each as it would be if there were no other kinds."""
    found = []
    for index, episode in enumerate(episodes):
        alike = [other for other in episodes if other.kind == episode.kind]
        place = sum(other.kind == episode.kind for other in episodes[:index])
        found.append(reinforce_plus_plus(alike, gamma=gamma, high_level_gamma=high_level_gamma, baseline=False)[place])
    return found


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


def exponential_average(
    rewards: Sequence[float], values: Sequence[float], gamma: float, lam: float, *, stays: bool = False
) -> list[float]:
    """GAE by its definition: the discounted sum of all later temporal differences. `stays`: behind the end V is as before."""
    n = len(rewards)
    following = [*values[1:], values[-1] if stays else 0.0] if n else []
    deltas = [rewards[t] + gamma * following[t] - values[t] for t in range(n)]
    return [fsum((gamma * lam) ** (k - t) * deltas[k] for k in range(t, n)) for t in range(n)]


def plus_values(advantages: list[Rows], episodes: Sequence[EpisodeRewards]) -> list[Rows]:
    return [
        cut([a + v for a, v in zip([x for step in rows for x in step], row(episode.values), strict=True)], episode)
        for rows, episode in zip(advantages, episodes, strict=True)
    ]


def gae(
    episodes: Sequence[EpisodeRewards], *, gamma: float, lam: float, bootstrap: bool = False
) -> tuple[list[Rows], list[Rows]]:
    plain = [
        cut(exponential_average(row(e.rewards), row(e.values), gamma, lam, stays=bootstrap and e.cut_off), e) for e in episodes
    ]
    return whiten(plain), plus_values(plain, episodes)


def bi_level_gae(
    episodes: Sequence[EpisodeRewards], *, gamma: float, lam: float, high_level_gamma: float, bootstrap: bool = False
) -> tuple[list[Rows], list[Rows]]:
    plain = []
    for episode in episodes:
        turns = exponential_average(
            [float(step[-1]) for step in episode.rewards],
            [float(step[-1]) for step in episode.values],
            high_level_gamma,
            lam,
            stays=bootstrap and episode.cut_off,
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


def turn_gae(
    episodes: Sequence[EpisodeRewards], *, lam: float, high_level_gamma: float, bootstrap: bool = False
) -> tuple[list[Rows], list[list[float]]]:
    """Advantages, and what the critic learns at the first token of each turn."""
    plain, returns = [], []
    for episode in episodes:
        earned = [fsum(float(r) for r in step) for step in episode.rewards]
        values = [float(step[0]) for step in episode.values]
        turns = exponential_average(earned, values, high_level_gamma, lam, stays=bootstrap and episode.cut_off)
        plain.append([[turn] * len(step) for turn, step in zip(turns, episode.rewards, strict=True)])
        returns.append([turn + value for turn, value in zip(turns, values, strict=True)])
    return whiten(plain), returns


def gigpo(episodes: Sequence[EpisodeRewards], *, by_std: bool, gamma: float, weight: float) -> list[Rows]:
    def later(episode: EpisodeRewards) -> list[float]:
        return returns_to_go([fsum(float(r) for r in step) for step in episode.rewards], gamma)

    def above(value: float, others: list[float]) -> float:
        n = len(others)
        if n == 1:
            return 0.0
        mean = fsum(others) / n
        return (value - mean) / (sqrt(fsum((x - mean) ** 2 for x in others) / (n - 1)) + 1e-6 if by_std else 1.0)

    found = []
    for episode, whole in zip(episodes, grpo(episodes, by_std=by_std), strict=True):
        rows = []
        for anchor, value, tokens in zip(episode.anchors, later(episode), whole, strict=True):
            same = [
                other
                for peer in episodes
                if peer.group == episode.group
                for page, other in zip(peer.anchors, later(peer), strict=True)
                if page == anchor
            ]
            rows.append([token + weight * above(value, same) for token in tokens])
        found.append(rows)
    return found
