"""From judged episodes to the advantages of their steps, by value."""

import numpy as np
import pytest

from schemas.ids import EpisodeId
from schemas.messages import RecordRef
from schemas.objective_config import ObjectiveConfig
from tests.unit.test_groups import GRPO, member
from trainer.episodes.episode_steps import EpisodeSteps
from trainer.episodes.groups import Group
from trainer.episodes.success_replay import SuccessReplay
from trainer.objective.credit import credit, episodes_of


def ref(episode: str, step: int) -> RecordRef:
    return RecordRef(EpisodeId(f"train-r0000-{episode}"), 1, "act", step)


def played(steps: dict[str, dict[RecordRef, int]]) -> dict[EpisodeId, EpisodeSteps]:
    return {
        EpisodeId(episode): EpisodeSteps(list(lengths), list(lengths.values()), [""] * len(lengths))
        for episode, lengths in steps.items()
    }


def test_every_token_of_an_episode_has_its_advantage() -> None:
    steps = {f"train-r0000-t0-m{index}": {ref(f"t0-m{index}", step): 2 + step for step in range(2)} for index in range(2)}
    episodes = episodes_of([Group((member(0, 0, 1.0), member(0, 1, 0.0)))], played(steps))
    found = credit(episodes, GRPO, proximal={}, reference={}, values={})
    assert list(found.advantages) == [ref("t0-m0", 0), ref("t0-m0", 1), ref("t0-m1", 0), ref("t0-m1", 1)]
    for name, sign in (("t0-m0", 1.0), ("t0-m1", -1.0)):
        for step in range(2):
            assert found.advantages[ref(name, step)] == pytest.approx(np.full(2 + step, sign * 0.5**0.5), rel=1e-5)
    assert found.instructive == list(found.advantages)
    assert found.returns == {}


def test_equal_rewards_teach_nothing() -> None:
    steps = {f"train-r0000-t0-m{index}": {ref(f"t0-m{index}", 0): 3} for index in range(3)}
    episodes = episodes_of([Group(tuple(member(0, index, 0.1) for index in range(3)))], played(steps))
    found = credit(episodes, GRPO, proximal={}, reference={}, values={})
    assert len(found.advantages) == 3
    assert found.instructive == []


def test_an_episode_without_steps_is_compared_with_all_the_same() -> None:
    steps = {"train-r0000-t0-m0": {ref("t0-m0", 0): 1}}
    found = credit(
        episodes_of([Group((member(0, 0, 1.0), member(0, 1, 0.0)))], played(steps)), GRPO, proximal={}, reference={}, values={}
    )
    assert found.advantages[ref("t0-m0", 0)] == pytest.approx([0.5**0.5], rel=1e-5)


def test_a_task_that_is_played_more_often_makes_groups_of_their_own() -> None:
    groups = [Group((member(0, 0, 1.0), member(0, 1, 0.0))), Group((member(0, 2, 5.0), member(0, 3, 3.0)))]
    steps = {f"train-r0000-t0-m{index}": {ref(f"t0-m{index}", 0): 1} for index in range(4)}
    plain = ObjectiveConfig(adv_estimator="rloo", loss_type="clipped", group_size=2)
    found = credit(episodes_of(groups, played(steps)), plain, proximal={}, reference={}, values={})
    assert [array.tolist() for array in found.advantages.values()] == [[1.0], [-1.0], [2.0], [-2.0]]


@pytest.mark.parametrize("num_groups", [1, 2])
def test_an_earlier_success_teaches_with_every_group_that_it_stands_in(num_groups: int) -> None:
    failed = [Group((member(0, 2 + 2 * n, 0.0), member(0, 3 + 2 * n, 0.0))) for n in range(num_groups)]
    groups = SuccessReplay(2, [member(0, 0, 1.0)]).completed(failed)
    steps = {f"train-r0000-t0-m{index}": {ref(f"t0-m{index}", 0): 1} for index in range(2 + 2 * num_groups)}
    plain = ObjectiveConfig(adv_estimator="rloo", loss_type="clipped", group_size=2, success_replay=2)
    found = credit(episodes_of(groups, played(steps)), plain, proximal={}, reference={}, values={})
    assert found.advantages[ref("t0-m0", 0)].tolist() == [1.0 * num_groups]
    assert sum(array.sum() for array in found.advantages.values()) == pytest.approx(0.0)


def test_remax_compares_with_the_greedy_episode_which_has_no_advantages() -> None:
    remax = ObjectiveConfig(adv_estimator="remax", loss_type="clipped", group_size=1)
    steps = {f"train-r0000-t0-m{index}": {ref(f"t0-m{index}", 0): 2} for index in range(2)}
    groups = [Group((member(0, 0, 1.0), member(0, 1, 0.25, greedy=True)))]
    found = credit(episodes_of(groups, played(steps)), remax, proximal={}, reference={}, values={})
    assert {key: array.tolist() for key, array in found.advantages.items()} == {ref("t0-m0", 0): [0.75, 0.75]}


def test_divergence_is_taken_off_every_tokens_reward() -> None:
    costly = ObjectiveConfig(adv_estimator="reinforce_plus_plus", loss_type="clipped", kl_reward_coef=0.5)
    step, other = ref("t0-m0", 0), ref("t0-m1", 0)
    groups = [Group((member(0, index, 0.0),)) for index in range(2)]
    steps = {f"train-r0000-t0-m{index}": {ref(f"t0-m{index}", 0): 1} for index in range(2)}
    near = {step: np.array([-1.0]), other: np.array([-1.0])}
    far = {step: np.array([-3.0]), other: np.array([-1.0])}
    found = credit(episodes_of(groups, played(steps)), costly, proximal=near, reference=far, values={})
    assert found.advantages[step][0] < 0 < found.advantages[other][0], "the one that moved away is worth less"


def test_a_critic_has_returns_to_learn() -> None:
    gae = ObjectiveConfig(adv_estimator="gae", loss_type="clipped")
    steps = {"train-r0000-t0-m0": {ref("t0-m0", 0): 1, ref("t0-m0", 1): 1}}
    values = {ref("t0-m0", 0): np.array([0.25]), ref("t0-m0", 1): np.array([0.5])}
    found = credit(episodes_of([Group((member(0, 0, 1.0),))], played(steps)), gae, proximal={}, reference={}, values=values)
    assert [array.tolist() for array in found.returns.values()] == [[1.0], [1.0]], "gamma and lambda are 1"
