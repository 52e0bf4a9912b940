"""No key of the objective is in vain without a word: it changes the gradient, is refused, or is noted."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from msgspec import structs

from ops.config.idle_keys import idle_notes
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.extensions import ESTIMATORS, LOSSES
from schemas.messages import RecordRef
from schemas.objective_config import CriticConfig, ObjectiveConfig
from tests.unit.test_groups import member
from trainer.episodes.episode_steps import EpisodeSteps
from trainer.episodes.groups import Group
from trainer.objective.agreement import require_agreement
from trainer.objective.credit import Arrays, credit, episodes_of
from trainer.objective.policy_objective import PolicyObjective
from trainer.objective.step_shares import StepShares
from trainer.token_losses import Outputs, TokenTargets

CHANGED: dict[str, object] = {
    "norm_adv_by_std_in_grpo": False,
    "length_normaliser": "per_trajectory",
    "length_constant": 3.0,
    "normalize_advantages": True,
    "pass_rate_weights": (0.5, 0.7, 1.5, 0.9, 0.6),
    "reward_scale": 2.0,
    "reward_clip": 0.4,
    "overlong_buffer_len": 4,
    "overlong_penalty_factor": 3.0,
    "bootstrap_cut_off": True,
    "use_multi_turn_reward": True,
    "gamma": 0.5,
    "lam": 0.5,
    "high_level_gamma": 0.5,
    "negative_advantage_scale": 0.5,
    "clip_ratio_low": 0.05,
    "clip_ratio_high": 0.05,
    "clip_ratio_c": 1.1,
    "behaviour_weight_cap": 1.2,
    "importance_weight_cap": 1.1,
    "importance_weight_level": "sequence",
    "proximal": "interpolated",
    "rejection_level": "token",
    "rejection_kind": "k3",
    "rejection_low": 0.8,
    "rejection_high": 1.2,
    "early_stop_imp_ratio": 1.05,
    "entropy_coeff": 0.1,
    "kl_loss_coef": 0.1,
    "kl_loss_type": "mse",
    "kl_reward_coef": 0.1,
    "kl_reward_type": "mse",
    "loss_agg_mode": "traj-mean-token-mean",
    "loss_scale_factor": 7.0,
}
SWITCHES: dict[str, dict[str, object]] = {
    "length_constant": {"length_normaliser": "constant"},
    "overlong_penalty_factor": {"overlong_buffer_len": 4},
    "reward_scale": {"reward_clip": 0.9},
    "rejection_kind": {"rejection_level": "token"},
    "rejection_low": {"rejection_level": "token"},
    "rejection_high": {"rejection_level": "token"},
    "kl_loss_type": {"kl_loss_coef": 0.1},
    "kl_reward_type": {"kl_reward_coef": 0.1},
    "loss_scale_factor": {"loss_agg_mode": "seq-mean-token-sum-norm"},
}
"""What a key waits for."""
ELSEWHERE = {
    "adv_estimator",
    "loss_type",
    "group_size",
    "dynamic_sampling",
    "max_refill",
    "train_on_last_turn",
    "reference_model",
    "critic",
    "settings",
    "success_replay",
}
"""Keys that say what is played and trained on, or by whom; `max_refill`, `critic` and `success_replay` are in tests of
their own."""
MAX_NEW_TOKENS = 8


class World:
    """Three tasks of four episodes each, of up to four steps, and all that is known of their tokens; numbers are fixed."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        self.groups, self.steps = [], {}
        for group in range(3):
            members = []
            for index in range(4):
                success = bool(rng.random() < (group + 1) / 4)
                num_steps = int(rng.integers(1, 5))
                plain = member(group, index, float(success) + 0.3 * float(rng.random()), greedy=False)
                members.append(
                    structs.replace(
                        plain,
                        success=success,
                        cut_off=not success,
                        num_steps=num_steps + 1,
                        step_rewards=tuple(rng.normal(0, 0.2, num_steps).tolist()),
                    )
                )
                refs = [RecordRef(plain.episode, 1, "act", step) for step in range(num_steps)]
                lengths = rng.integers(1, MAX_NEW_TOKENS + 1, num_steps).tolist()
                anchors = [f"page {min(step, 1)}" for step in range(num_steps)]
                self.steps[plain.episode] = EpisodeSteps(refs, lengths, anchors)
            greedy = member(group, 4, 0.4, greedy=True)
            self.groups.append(Group((*members, greedy)))
        self.refs = {ref: length for found in self.steps.values() for ref, length in zip(found.usable, found.lengths)}  # noqa: B905
        drawn = {ref: rng.normal(-1.2, 0.4, length) for ref, length in self.refs.items()}
        self.behaviour = drawn
        self.proximal = {ref: array + rng.normal(0, 0.3, len(array)) for ref, array in drawn.items()}
        self.reference = {ref: array + rng.normal(0, 0.4, len(array)) for ref, array in drawn.items()}
        self.values: Arrays = {ref: rng.normal(0.4, 0.2, len(array)) for ref, array in drawn.items()}
        self.now = {ref: array + rng.normal(0, 0.25, len(array)) for ref, array in self.proximal.items()}
        self.staleness = {ref: rng.integers(0, 4, len(array)) for ref, array in drawn.items()}

    def gradient(self, objective: ObjectiveConfig) -> np.ndarray:
        """Of the loss of one optimizer step over everything, by every log-probability, then by every entropy."""
        greedy = objective.adv_estimator == "remax"
        groups = [Group(tuple(one for one in group.members if greedy or not one.greedy)) for group in self.groups]
        episodes = episodes_of(groups, self.steps)
        found = credit(
            episodes,
            objective,
            proximal=self.proximal,
            reference=self.reference,
            values=self.values,
            max_new_tokens=MAX_NEW_TOKENS,
        )
        refs = list(found.advantages)
        shares = StepShares(episodes, objective).of(refs)

        def joined(arrays: Arrays) -> torch.Tensor:
            return torch.from_numpy(np.concatenate([np.asarray(arrays[ref], dtype=np.float64) for ref in refs]))

        targets = TokenTargets.of(
            joined(found.advantages),
            weights=joined(shares),
            behaviour=joined(self.behaviour),
            proximal=joined(self.proximal),
            reference=joined(self.reference),
            staleness=joined(self.staleness),
            sequences=torch.repeat_interleave(torch.arange(len(refs)), torch.tensor([self.refs[ref] for ref in refs])),
        )
        logprobs = joined(self.now).requires_grad_()
        entropies = torch.ones_like(logprobs.detach()).requires_grad_()
        token = PolicyObjective(objective)(Outputs(logprobs, entropies), targets)
        loss = (token.losses * targets.weights).sum() + 0.0 * entropies.sum()
        loss.backward()  # type: ignore[no-untyped-call]
        assert logprobs.grad is not None
        assert entropies.grad is not None
        return torch.cat([logprobs.grad, entropies.grad]).numpy()


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def verdict(world: World, plain: ObjectiveConfig, changed: ObjectiveConfig, key: str) -> str:
    try:
        require_agreement(changed)
    except ConfigurationError as error:
        return "refused" if f"objective_config.{key} is" in str(error) else f"refused for {error}"
    config = Config(objective_config=changed)
    if f"objective_config.{key}" in {note.key for note in idle_notes(config)}:
        return "noted"
    return "has an effect" if not np.allclose(world.gradient(plain), world.gradient(changed), rtol=1e-5) else "in vain"


def test_every_key_is_looked_at() -> None:
    assert {each.name for each in fields(ObjectiveConfig)} == CHANGED.keys() | ELSEWHERE


@pytest.mark.parametrize("key", CHANGED)
@pytest.mark.parametrize("estimator", ESTIMATORS.builtin)
def test_no_key_is_in_vain_without_a_word(world: World, estimator: str, key: str) -> None:
    for loss in LOSSES.builtin:
        if LOSSES.find(loss).traits.imitates:
            continue
        plain = ObjectiveConfig(adv_estimator=estimator, loss_type=loss, group_size=4)
        alone = verdict(world, plain, replace(plain, **{key: CHANGED[key]}), key)  # type: ignore[arg-type]
        assert alone in ("noted", "refused", "has an effect"), (loss, key, alone)
        if key in SWITCHES:
            switched = replace(plain, **SWITCHES[key])  # type: ignore[arg-type]
            try:
                require_agreement(switched)
            except ConfigurationError:
                continue
            both = verdict(world, switched, replace(switched, **{key: CHANGED[key]}), key)  # type: ignore[arg-type]
            assert both == "has an effect", (loss, key, both)


@pytest.mark.parametrize("key", CHANGED)
@pytest.mark.parametrize("loss", [loss for loss in LOSSES.builtin if LOSSES.find(loss).traits.imitates])
def test_cloning_says_which_keys_it_does_not_know(loss: str, key: str) -> None:
    plain = ObjectiveConfig(loss_type=loss)
    changed = replace(plain, **{key: CHANGED[key]})  # type: ignore[arg-type]
    known = {"entropy_coeff"} | (
        {"clip_ratio_high", "importance_weight_cap", "importance_weight_level", "proximal", "rejection_level"}
        | {"early_stop_imp_ratio"}
        if loss == "weighted_cloning"
        else set()
    )
    noted = {note.key.rpartition(".")[2] for note in idle_notes(Config(objective_config=changed))}
    if key in known:
        require_agreement(changed)
        assert key not in noted
    elif key not in noted:
        with pytest.raises(ConfigurationError, match=f"objective_config.{key} is .*, and has no effect"):
            require_agreement(changed)


@pytest.mark.parametrize("estimator", ESTIMATORS.builtin)
def test_a_critic_is_configured_where_there_is_one(estimator: str) -> None:
    config = ObjectiveConfig(
        adv_estimator=estimator, loss_type="clipped", group_size=2, critic=CriticConfig(warmup_iterations=3)
    )
    require_agreement(config)
    noted = {note.key for note in idle_notes(Config(objective_config=config))}
    assert ("objective_config.critic.warmup_iterations" in noted) is not ESTIMATORS.find(estimator).traits.critic


@pytest.mark.parametrize("estimator", ESTIMATORS.builtin)
def test_a_success_joins_groups_whose_episodes_are_compared(estimator: str) -> None:
    config = ObjectiveConfig(adv_estimator=estimator, loss_type="clipped", group_size=2, success_replay=9)
    if ESTIMATORS.find(estimator).traits.compares:
        require_agreement(config)
        return
    with pytest.raises(ConfigurationError, match=r"success_replay is 9, .*or write gigpo, grpo, .* for adv_estimator"):
        require_agreement(config)


def test_refill_is_what_max_refill_waits_for() -> None:
    plain = ObjectiveConfig(adv_estimator="grpo", loss_type="clipped", group_size=2, max_refill=2.0)
    assert {note.key for note in idle_notes(Config(objective_config=plain))} >= {"objective_config.max_refill"}
    refill = replace(plain, dynamic_sampling="refill")
    assert not {note.key for note in idle_notes(Config(objective_config=refill))} & {"objective_config.max_refill"}


def test_an_overlong_buffer_fits_into_an_answer() -> None:
    objective = ObjectiveConfig(adv_estimator="grpo", loss_type="clipped", group_size=2, overlong_buffer_len=4000)
    with pytest.raises(ConfigurationError, match="overlong_buffer_len is 4000, and an answer has 3072 tokens at most"):
        Config(objective_config=objective)
