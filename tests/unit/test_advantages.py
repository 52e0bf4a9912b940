"""Every estimator against plain loops on random groups, and what its settings mean, by value."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import ConfigurationError
from schemas.ids import GroupId
from schemas.objective_config import ObjectiveConfig
from tests.support.training import advantage_oracles as oracles
from tests.support.training import ragged
from tests.support.training.advantage_oracles import Rows
from trainer.advantages import EpisodeAdvantages, EpisodeRewards, Steps
from trainer.advantages.rewards import RewardRules, overlong_penalty, token_rewards
from trainer.advantages.scaling import Scaled
from trainer.advantages.whitening import whitened
from trainer.estimators import configured_estimator
from trainer.estimators.bi_level_gae import BiLevelGae
from trainer.estimators.gae import Gae
from trainer.estimators.gigpo import Gigpo
from trainer.estimators.grpo import GroupRelative
from trainer.estimators.reinforce_plus_plus import ReinforcePlusPlus
from trainer.estimators.reinforce_plus_plus_baseline import ReinforcePlusPlusBaseline
from trainer.estimators.reinforce_plus_plus_by_kind import ReinforcePlusPlusByKind
from trainer.estimators.remax import remax
from trainer.estimators.rloo import leave_one_out
from trainer.estimators.turn_gae import TurnGae

DISCOUNTS = st.sampled_from([0.0, 0.5, 0.95, 1.0])
many = settings(max_examples=60)
seeds = st.integers(0, 2**32 - 1)


def agree(found: Sequence[Steps], expected: Sequence[Rows]) -> None:
    assert [[len(step) for step in steps] for steps in found] == [[len(step) for step in rows] for rows in expected]
    for steps, rows in zip(found, expected, strict=True):
        for step, numbers in zip(steps, rows, strict=True):
            np.testing.assert_allclose(step, numbers, rtol=1e-6, atol=1e-6)


def advantages(found: Sequence[EpisodeAdvantages]) -> list[Steps]:
    return [one.advantages for one in found]


@many
@given(seeds, st.booleans())
def test_grpo(seed: int, by_std: bool) -> None:
    episodes = ragged.episodes(seed)
    agree(advantages(GroupRelative(norm_adv_by_std_in_grpo=by_std)(episodes)), oracles.grpo(episodes, by_std=by_std))


@many
@given(seeds)
def test_rloo(seed: int) -> None:
    episodes = ragged.episodes(seed)
    agree(advantages(leave_one_out(episodes)), oracles.rloo(episodes))


@many
@given(seeds, DISCOUNTS, DISCOUNTS, st.booleans())
def test_reinforce_plus_plus(seed: int, gamma: float, high: float, baseline: bool) -> None:
    episodes = ragged.episodes(seed)
    expected = oracles.reinforce_plus_plus(episodes, gamma=gamma, high_level_gamma=high, baseline=baseline)
    agree(advantages((ReinforcePlusPlusBaseline if baseline else ReinforcePlusPlus)(gamma, high)(episodes)), expected)


def test_without_a_discount_between_steps_each_counts_by_what_it_earned() -> None:
    played = [episode([0, 0.5], [0, 0, -0.5], [1.5])]
    (alone,) = numbers(ReinforcePlusPlus(high_level_gamma=0.0)(played))
    assert [len(set(step)) for step in alone] == [1, 1, 1], "the tokens of a step share what it earned"
    assert alone[1][0] < alone[0][0] < alone[2][0]
    (whole,) = numbers(ReinforcePlusPlus()(played))
    assert whole[1][0] < whole[0][0] == pytest.approx(whole[2][0]), "with it, by all that came behind"


@many
@given(seeds, DISCOUNTS, DISCOUNTS)
def test_reinforce_plus_plus_by_kind(seed: int, gamma: float, high: float) -> None:
    episodes = ragged.episodes(seed)
    expected = oracles.reinforce_plus_plus_by_kind(episodes, gamma=gamma, high_level_gamma=high)
    agree(advantages(ReinforcePlusPlusByKind(gamma, high)(episodes)), expected)


def test_a_page_that_is_never_solved_is_not_pushed_by_one_that_is() -> None:
    episodes = [
        episode([0], [-1], kind="hard"),
        episode([-1], kind="hard"),
        episode([1], kind="easy"),
        episode([-1], kind="easy"),
    ]
    assert numbers(ReinforcePlusPlusByKind()(episodes)) == [[[0], [0]], [[0]], [[pytest.approx(1)]], [[pytest.approx(-1)]]]


@many
@given(seeds)
def test_remax(seed: int) -> None:
    episodes = ragged.episodes(seed)
    agree(advantages(remax(episodes)), oracles.remax(episodes))


@many
@given(seeds, DISCOUNTS, DISCOUNTS, st.booleans())
def test_gae(seed: int, gamma: float, lam: float, bootstrap: bool) -> None:
    episodes = ragged.episodes(seed)
    found = Gae(gamma, lam, bootstrap_cut_off=bootstrap)(episodes)
    expected, returns = oracles.gae(episodes, gamma=gamma, lam=lam, bootstrap=bootstrap)
    agree(advantages(found), expected)
    agree([one.returns for one in found], returns)


@many
@given(seeds, DISCOUNTS, DISCOUNTS, DISCOUNTS, st.booleans())
def test_bi_level_gae(seed: int, gamma: float, lam: float, high: float, bootstrap: bool) -> None:
    episodes = ragged.episodes(seed)
    found = BiLevelGae(gamma, lam, high, bootstrap_cut_off=bootstrap)(episodes)
    expected, returns = oracles.bi_level_gae(episodes, gamma=gamma, lam=lam, high_level_gamma=high, bootstrap=bootstrap)
    agree(advantages(found), expected)
    agree([one.returns for one in found], returns)


@many
@given(seeds, DISCOUNTS, DISCOUNTS, st.booleans())
def test_turn_gae(seed: int, lam: float, high: float, bootstrap: bool) -> None:
    episodes = ragged.episodes(seed)
    found = TurnGae(high, lam, bootstrap_cut_off=bootstrap)(episodes)
    expected, returns = oracles.turn_gae(episodes, lam=lam, high_level_gamma=high, bootstrap=bootstrap)
    agree(advantages(found), expected)
    assert [[step[0] for step in one.returns] for one in found] == [pytest.approx(row) for row in returns]
    assert all(np.isnan(step[1:]).all() for one in found for step in one.returns), "the critic learns at the first token alone"


@many
@given(seeds, DISCOUNTS, st.booleans(), st.sampled_from([0.5, 1.0]))
def test_gigpo(seed: int, gamma: float, by_std: bool, weight: float) -> None:
    episodes = ragged.episodes(seed)
    found = Gigpo(norm_adv_by_std_in_grpo=by_std, gamma=gamma, step_advantage_weight=weight)(episodes)
    agree(advantages(found), oracles.gigpo(episodes, by_std=by_std, gamma=gamma, weight=weight))


def episode(
    *rewards: Sequence[float], group: str = "g", values: Sequence[Sequence[float]] = (), **more: object
) -> EpisodeRewards:
    steps = tuple(np.array(step, dtype=np.float64) for step in rewards)
    valued = tuple(np.array(step, dtype=np.float64) for step in values)
    defaults: dict[str, object] = {"reward": 0.0, "num_steps": len(steps)}
    return EpisodeRewards(group=GroupId(group), rewards=steps, values=valued, **defaults | more)  # type: ignore[arg-type]


def numbers(found: Sequence[EpisodeAdvantages]) -> list[list[list[float]]]:
    return [[step.tolist() for step in one.advantages] for one in found]


def test_grpo_by_hand() -> None:
    """Rewards 1, 0, 0, one of them without a trained step: mean 1/3, unbiased deviation sqrt(1/3); another task alone."""
    episodes = [
        episode([0, 0], [1]),
        episode([0, 0]),
        episode(reward=0.0, num_steps=3),
        episode([0, 2], group="alone"),
    ]
    std = (1 / 3) ** 0.5
    first, second, none, alone = numbers(GroupRelative()(episodes))
    assert np.concatenate(first) == pytest.approx([2 / 3 / std] * 3, rel=1e-5)
    assert second[0] == pytest.approx([-1 / 3 / std] * 2, rel=1e-5)
    assert none == []
    assert alone[0] == pytest.approx([2.0, 2.0], rel=1e-5)
    assert numbers(GroupRelative(norm_adv_by_std_in_grpo=False)(episodes))[0][0] == pytest.approx([2 / 3] * 2)
    assert numbers(GroupRelative()([episode([1]), episode([1])])) == [[[0.0]], [[0.0]]]


def test_bi_level_gae_without_discounts_is_gae() -> None:
    """Where turns earn at their ends."""
    for seed in range(10):
        episodes = [replace(one, rewards=tuple(at_end(step) for step in one.rewards)) for one in ragged.episodes(seed)]
        for bi_level, plain in zip(BiLevelGae()(episodes), Gae()(episodes), strict=True):
            for ours, theirs in zip(bi_level.advantages + bi_level.returns, plain.advantages + plain.returns, strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-9)


def at_end(step: np.ndarray) -> np.ndarray:
    return np.append(np.zeros(len(step) - 1), step.sum())


def test_bi_level_gae_discounts_between_turns_alone() -> None:
    """Values 0: a turn's tokens are all worth the sum of this turn's reward and half of what comes after it."""
    played = episode([0, 0, 1], [0, 2], [4], values=([0, 0, 0], [0, 0], [0]))
    (found,) = BiLevelGae(gamma=1.0, lam=1.0, high_level_gamma=0.5)([played])
    assert [step.tolist() for step in found.returns] == [[3, 3, 3], [4, 4], [4]]


def test_whitened_tokens_have_mean_zero_and_variance_one() -> None:
    steps = [one.rewards for one in ragged.episodes(4)]
    tokens = np.concatenate([step for found in whitened(steps) for step in found])
    assert (tokens.mean(), tokens.var()) == pytest.approx((0.0, 1.0), abs=1e-6)
    assert [step.tolist() for step in whitened([(np.full(2, 3.0),)])[0]] == [[0.0, 0.0]]
    assert whitened([(), ()]) == [(), ()]


@pytest.mark.parametrize(("normaliser", "divisor"), [("none", 1.0), ("per_trajectory", 5.0), ("constant", 10.0)])
def test_the_length_divides_whatever_the_estimator_found(normaliser: str, divisor: float) -> None:
    episodes = [episode([1.0], num_steps=5), episode([0.0], [0.0], num_steps=5)]
    config = ragged.objective("clipped", length_normaliser=normaliser, negative_advantage_scale=0.5)
    assert numbers(Scaled(leave_one_out, config)(episodes)) == [[[1 / divisor]], [[-0.5 / divisor], [-0.5 / divisor]]]


def test_steps_that_saw_the_same_page_are_compared() -> None:
    """Both begin on one page; the second step of each is alone with its page, and has the episode's advantage alone."""
    good, bad = episode([0.0], [1.0], anchors=("start", "a")), episode([0.0], [0.0], anchors=("start", "b"))
    found = numbers(Gigpo(norm_adv_by_std_in_grpo=False, gamma=0.5)([good, bad]))
    assert found == [[[0.5 + 0.25], [0.5]], [[-0.5 - 0.25], [-0.5]]]


def test_an_episode_that_was_cut_off_is_worth_what_the_critic_said_last() -> None:
    """Values 0.5 and 0.75, no reward: without it the episode lost all that it promised, with it nothing."""
    cut_off = episode([0.0], [0.0], values=([0.5], [0.75]), cut_off=True)
    (plain,), (bootstrapped,) = Gae()([cut_off]), Gae(bootstrap_cut_off=True)([cut_off])
    assert [step.tolist() for step in plain.returns] == [[0.0], [0.0]]
    assert [step.tolist() for step in bootstrapped.returns] == [[0.75], [0.75]]


@pytest.mark.parametrize(("successes", "factor"), [((0, 0, 0), 0.5), ((1, 0, 0), 1.0), ((1, 1, 0), 1.5), ((1, 1, 1), 0.25)])
def test_groups_are_weighed_by_their_pass_rate(successes: tuple[int, ...], factor: float) -> None:
    episodes = [episode([0.1 * at], success=bool(one)) for at, one in enumerate(successes)]
    config = ragged.objective("clipped", pass_rate_weights=(0.5, 1.0, 1.5, 1.25, 0.25))
    for (found,), (plain,) in zip(
        numbers(Scaled(leave_one_out, config)(episodes)), numbers(leave_one_out(episodes)), strict=True
    ):
        assert found == pytest.approx([factor * plain[0]])


def test_advantages_of_the_batch_are_normalised_before_they_are_divided() -> None:
    config = ragged.objective("clipped", normalize_advantages=True, length_normaliser="constant", length_constant=2.0)
    found = Scaled(leave_one_out, config)([episode([1.0]), episode([0.0, 0.0]), episode([0.5])])
    tokens = np.concatenate([step for one in found for step in one.advantages])
    assert (tokens.mean(), tokens.std()) == pytest.approx((0.0, 0.5), abs=1e-6)


def test_rewards_are_scaled_then_clipped_and_none_is_lost() -> None:
    rules = RewardRules(ragged.objective("clipped", reward_scale=2.0, reward_clip=1.5, use_multi_turn_reward=True))
    assert [rules.adjusted(reward) for reward in (0.5, 1.0, -3.0)] == [1.0, 1.5, -1.5]
    placed = rules.placed(1.0, [2, 1], trained=[0, 1], step_rewards=[0.25, 0.0])
    assert [step.tolist() for step in placed] == [[0.0, 0.5], [1.0]], "what the clip took, the end bears"


def test_answers_near_their_limit_cost() -> None:
    """Of 10 tokens the last 4 cost: nothing for 6, half for 8, all for 10."""
    assert [overlong_penalty(n, max_new_tokens=10, buffer_len=4, factor=0.5) for n in (3, 6, 8, 10)] == [0, 0, -0.25, -0.5]
    rules = RewardRules(ragged.objective("clipped", overlong_buffer_len=4, overlong_penalty_factor=0.5), max_new_tokens=10)
    placed = rules.placed(1.0, [8, 2], trained=[0, 1], step_rewards=())
    assert [step.tolist()[-1] for step in placed] == [-0.25, 1.0]


def test_the_greedy_episode_is_what_remax_compares_with() -> None:
    episodes = [episode([0, 1], [2]), episode([0.5], greedy=True), episode([7], group="without")]
    assert numbers(remax(episodes)) == [[[2.5, 2.5], [1.5]], [[0.0]], [[0.0]]]


CONFIGURED: list[tuple[dict[str, object], Callable[[Sequence[EpisodeRewards]], list[Rows]]]] = [
    ({"adv_estimator": "grpo"}, oracles.grpo),
    ({"adv_estimator": "grpo", "norm_adv_by_std_in_grpo": False}, lambda e: oracles.grpo(e, by_std=False)),
    ({"adv_estimator": "rloo"}, oracles.rloo),
    (
        {"adv_estimator": "reinforce_plus_plus", "gamma": 0.9, "high_level_gamma": 0.5},
        lambda e: oracles.reinforce_plus_plus(e, gamma=0.9, high_level_gamma=0.5, baseline=False),
    ),
    (
        {"adv_estimator": "reinforce_plus_plus_baseline", "gamma": 0.9},
        lambda e: oracles.reinforce_plus_plus(e, gamma=0.9, baseline=True),
    ),
    (
        {"adv_estimator": "reinforce_plus_plus_by_kind", "gamma": 0.9},
        lambda e: oracles.reinforce_plus_plus_by_kind(e, gamma=0.9),
    ),
    ({"adv_estimator": "remax"}, oracles.remax),
    ({"adv_estimator": "gae", "gamma": 0.9, "lam": 0.8}, lambda e: oracles.gae(e, gamma=0.9, lam=0.8)[0]),
    (
        {"adv_estimator": "bi_level_gae", "gamma": 0.9, "lam": 0.8, "high_level_gamma": 0.7},
        lambda e: oracles.bi_level_gae(e, gamma=0.9, lam=0.8, high_level_gamma=0.7)[0],
    ),
]


@pytest.mark.parametrize(
    ("keys", "oracle"), CONFIGURED, ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else ""
)
def test_a_configuration_names_its_estimator(
    keys: dict[str, object], oracle: Callable[[Sequence[EpisodeRewards]], list[Rows]]
) -> None:
    config = ObjectiveConfig(loss_type="clipped", group_size=2, **keys)  # type: ignore[arg-type]
    built = configured_estimator(config)
    for seed in range(5):
        episodes = ragged.episodes(seed)
        agree(advantages(built(episodes)), oracle(episodes))


def test_imitation_has_no_estimator() -> None:
    with pytest.raises(ConfigurationError, match="adv_estimator is 'none'"):
        configured_estimator(ObjectiveConfig())


@many
@given(seeds)
def test_no_reward_is_lost_between_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_steps = int(rng.integers(1, 8))
    trained = sorted(rng.choice(num_steps, size=int(rng.integers(1, num_steps + 1)), replace=False).tolist())
    lengths = rng.integers(1, 5, len(trained)).tolist()
    earned = rng.normal(size=int(rng.integers(0, num_steps + 1))).tolist()
    reward = float(rng.normal())
    placed = token_rewards(reward, lengths, trained=trained, step_rewards=earned)
    assert [len(step) for step in placed] == lengths
    assert sum(step.sum() for step in placed) == pytest.approx(reward)
    assert all((step[:-1] == 0).all() for step in placed)
    for index, value in enumerate(earned):
        if index not in trained:
            continue
        earlier = [step for step in trained if step < index]
        since = [earned[at] for at in range(earlier[-1] + 1 if earlier else 0, index)]
        at = trained.index(index)
        if at < len(trained) - 1:
            assert placed[at][-1] == pytest.approx(value + sum(since))


def test_rewards_of_the_end_and_of_steps_by_hand() -> None:
    def shown(steps: Steps) -> list[list[float]]:
        return [np.round(step, 9).tolist() for step in steps]

    assert shown(token_rewards(1.0, [2, 3])) == [[0, 0], [0, 0, 1]]
    assert shown(token_rewards(1.0, [2, 3], trained=[1, 4], step_rewards=[0.1, 0.2, 0.4])) == [[0, 0.3], [0, 0, 0.7]]
    behind = token_rewards(0.75, [1, 1], trained=[0, 1], step_rewards=[0.25, 0.0, 0.5])
    assert shown(behind) == [[0.25], [0.5]]
    assert token_rewards(1.0, []) == ()


def test_the_divergence_is_taken_off_every_tokens_reward() -> None:
    rewards = (np.zeros(2), np.array([1.0]))
    ours = (np.array([-1.0, -2.0], dtype=np.float32), np.array([-0.5], dtype=np.float32))
    theirs = (np.array([-2.0, -1.0], dtype=np.float32), np.array([-0.5], dtype=np.float32))
    found = RewardRules(ragged.objective("clipped", kl_reward_coef=0.1)).less_divergence(rewards, ours, theirs)
    assert [step.tolist() for step in found] == [pytest.approx([-0.1, 0.1]), [1.0]]
