"""What the learner of policy gradients hands to the engine, and cloning with weights and a validation split, by value."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import structlog
from msgspec import structs

from bus import chain
from bus.codec import decode, encode
from bus.memory import MemoryBus
from ops.simulation.training import SimulatedTrainEngine
from schemas.algorithm_config import AlgorithmConfig
from schemas.feeder_config import FeederConfig, Stage
from schemas.messages import Action, ActionKind, Checkpoint, Judgement, Outcome, StepRequest
from schemas.objective_config import CriticConfig, ObjectiveConfig
from schemas.policy_config import PolicyConfig
from tests import builders
from tests.support.training.learning_world import CUT_OFF, Recorder, play_random, train
from tests.support.training.trainer_world import SUBJECTS, judge, member_task
from trainer.episodes.validation import is_held_out

pytestmark = pytest.mark.anyio
KEEPS_UNCHANGED = AlgorithmConfig(num_train_epochs=1, filter_same_screenshot=False)
CUT = PolicyConfig(top_k=2)


async def played(*groups: tuple[float | None, ...], greedy: int | None = None) -> MemoryBus:
    """Episodes group after group, with these rewards; member `greedy` of each was sampled greedily."""
    bus, draw = MemoryBus(SUBJECTS), random.Random(0)
    for group, rewards in enumerate(groups):
        for member, reward in enumerate(rewards):
            done = await play_random(bus, member_task(group, member, greedy=member == greedy), draw)
            await judge(bus, done, reward)
    return bus


def metrics(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "metrics.jsonl").read_text().splitlines()]


def episodes(recorder: Recorder) -> set[str]:
    return {item.sample.ref.episode.removeprefix("train-r0000-") for item in recorder.items}


async def test_all_scored_episodes_are_learnt_from_unparsed_steps_too(tmp_path: Path) -> None:
    bus, recorder = await played((1.0, 0.0, None), (0.0, 0.0, 0.0)), Recorder()
    grpo = ObjectiveConfig(adv_estimator="grpo", loss_type="clipped", group_size=3)
    await train(bus, tmp_path, recorder, grpo, num_iterations=1, batch=6, algorithm=KEEPS_UNCHANGED)
    assert episodes(recorder) == {"t0-m0", "t0-m1"}
    parsed = []
    for item in recorder.items:
        record = await chain.read(bus, SUBJECTS, item.sample.ref)
        assert record is not None
        assert isinstance(record.message, StepRequest)
        parsed.append(record.message.parsed)
        assert np.sign(item.targets.advantages).tolist() == [1.0 if "m0" in item.sample.ref.episode else -1.0] * len(
            item.targets.advantages
        )
    assert set(parsed) == {True, False}
    (found,) = metrics(tmp_path)
    assert (found["groups"], found["groups_trained"], found["groups_dropped"], found["episodes"]) == (2, 2, 0, 5)
    assert found["reward_mean"] == pytest.approx(0.2)
    assert found["reward_std"] == pytest.approx(0.4)
    assert found["steps_without_advantage"] > 0
    assert found["fresh_samples"] - found["steps_without_advantage"] == len(recorder.items)
    assert found["trained_staleness_0"] == 5
    judged = [record.message for record in await bus.history(SUBJECTS.judged, SUBJECTS.everything("judged"))]
    num_steps = [one.trajectory.num_steps for one in judged if isinstance(one, Judgement)]
    assert found["episode_steps"] == pytest.approx(sum(num_steps) / 6), "of the batch, whatever is trained on"
    assert found["trained_steps_per_episode"] == pytest.approx((sum(num_steps) - num_steps[2]) / 5)
    assert "left_out_unparsed" not in found
    assert all(
        f"{phase}_s" in found for phase in ("wait", "fetch", "mismatch", "proximal", "reference", "values", "advantages")
    )


async def test_a_metric_that_is_no_number_is_told_and_not_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version is, and everybody can read it."""
    bus, recorder = await played((1.0, 0.0)), Recorder()
    real = SimulatedTrainEngine.train
    monkeypatch.setattr(SimulatedTrainEngine, "train", lambda *given: replace(real(*given), loss=math.nan, grad_norm=1e39))
    rloo = ObjectiveConfig(adv_estimator="rloo", loss_type="clipped", group_size=2)
    with structlog.testing.capture_logs() as logs:
        await train(bus, tmp_path, recorder, rloo, num_iterations=1, batch=2, algorithm=KEEPS_UNCHANGED)
    records = await bus.history(SUBJECTS.checkpoints, SUBJECTS.everything("checkpoint"))
    checkpoint = records[-1].message
    assert isinstance(checkpoint, Checkpoint)
    assert decode(encode(checkpoint)) == checkpoint
    assert not {"loss", "grad_norm"} & checkpoint.metrics.keys()
    assert [line["names"] for line in logs if line["event"] == "metrics_not_finite"] == [["grad_norm", "loss"]]


async def test_the_last_turn_alone_is_trained_on_where_that_is_asked_for(tmp_path: Path) -> None:
    bus, recorder = await played((1.0, 0.0), (0.0, 1.0)), Recorder()
    last = ObjectiveConfig(adv_estimator="rloo", loss_type="clipped", group_size=2, train_on_last_turn=True)
    await train(bus, tmp_path, recorder, last, num_iterations=1, batch=4, algorithm=KEEPS_UNCHANGED)
    assert len(recorder.items) == 4
    for item in recorder.items:
        ref = item.sample.ref
        assert await chain.read(bus, SUBJECTS, structs.replace(ref, step=ref.step + 1)) is None
    assert metrics(tmp_path)[0]["left_out_earlier"] > 0


async def test_a_stage_changes_the_learning_rate_also_for_a_trainer_that_begins_in_it(tmp_path: Path) -> None:
    bus, recorder = await played(*[(1.0, 0.0)] * 4), Recorder()
    stages = {"slower": Stage(from_version=1, learning_rate=5e-7), "slowest": Stage(from_version=3, learning_rate=1e-7)}
    rloo = ObjectiveConfig(adv_estimator="rloo", loss_type="clipped", group_size=2)
    for num_iterations in (2, 4):  # two trainers, one after the other
        feeder = FeederConfig(num_iterations=num_iterations, max_staleness=9, stages=stages)
        await train(bus, tmp_path, recorder, rloo, num_iterations=0, batch=2, algorithm=KEEPS_UNCHANGED, feeder=feeder)
    assert list(dict.fromkeys(recorder.rate_factors.values())) == pytest.approx([1.0, 0.5, 0.1])
    by_version = [row["samples"] for row in metrics(tmp_path)]
    assert len(by_version) == 4


async def test_groups_that_are_not_complete_are_carried_over(tmp_path: Path) -> None:
    bus, recorder = MemoryBus(SUBJECTS), Recorder()
    draw = random.Random(1)
    for group, member, reward in ((0, 0, 1.0), (1, 0, 1.0), (2, 0, 1.0), (0, 1, 0.0), (1, 1, 0.0), (2, 1, 0.0)):
        await judge(bus, await play_random(bus, member_task(group, member), draw), reward)
    rloo = ObjectiveConfig(adv_estimator="rloo", loss_type="clipped", group_size=2)
    await train(bus, tmp_path, recorder, rloo, num_iterations=2, batch=3, algorithm=KEEPS_UNCHANGED)
    first, second = metrics(tmp_path)
    assert (first["groups"], first["groups_carried_members"], first["samples"]) == (0, 3, 0)
    assert (second["groups"], second["groups_carried_members"], second["episodes"]) == (3, 0, 6)
    assert len(episodes(recorder)) == 6


async def test_the_last_pass_closes_groups_with_what_there_is(tmp_path: Path) -> None:
    bus, recorder = await played((1.0, 0.0), (1.0, 0.0)), Recorder()
    rloo = ObjectiveConfig(adv_estimator="rloo", loss_type="clipped", group_size=4)
    await train(bus, tmp_path, recorder, rloo, num_iterations=2, batch=3, algorithm=KEEPS_UNCHANGED, num_stored=4)
    first, second = metrics(tmp_path)
    assert (first["groups"], first["groups_carried_members"]) == (0, 3)
    assert (second["groups"], second["groups_carried_members"], second["episodes"]) == (2, 0, 4)


async def test_staleness_of_stored_episodes_is_not_reported(tmp_path: Path) -> None:
    bus, recorder = await played((1.0, 0.0), (1.0, 0.0)), Recorder()
    rloo = ObjectiveConfig(adv_estimator="rloo", loss_type="clipped", group_size=2)
    await train(bus, tmp_path, recorder, rloo, num_iterations=2, batch=2, algorithm=KEEPS_UNCHANGED, num_stored=4)
    rows = metrics(tmp_path)
    assert [row["episodes"] for row in rows] == [2, 2]
    assert not [name for row in rows for name in row if name.startswith("trained_staleness")]


async def test_remax_learns_from_all_but_the_greedy_episode(tmp_path: Path) -> None:
    bus, recorder = await played((1.0, 0.0, 0.25), greedy=2), Recorder()
    remax = ObjectiveConfig(adv_estimator="remax", loss_type="clipped", group_size=2)
    await train(bus, tmp_path, recorder, remax, num_iterations=1, batch=3, algorithm=KEEPS_UNCHANGED)
    found = {item.sample.ref.episode[-2:]: float(item.targets.advantages[0]) for item in recorder.items}
    assert found == {"m0": 0.75, "m1": -0.25}


async def test_a_critic_learns_before_the_policy_and_alone_at_first(tmp_path: Path) -> None:
    bus, recorder = await played((1.0,), (0.0,), (1.0,), (0.0,)), Recorder()
    ppo = ObjectiveConfig(adv_estimator="gae", loss_type="clipped", critic=CriticConfig(warmup_iterations=1))
    await train(bus, tmp_path, recorder, ppo, num_iterations=2, batch=2, algorithm=KEEPS_UNCHANGED)
    first, second = metrics(tmp_path)
    assert (first["samples"], first["critic_samples"] > 0) == (0, True)
    assert second["samples"] == second["critic_samples"]
    assert {float(item.targets.values[0]) for item in recorder.critic} == {0.25}
    by_episode = {item.sample.ref.episode[-5:]: set(item.targets.returns.tolist()) for item in recorder.critic}
    assert by_episode == {"t0-m0": {1.0}, "t1-m0": {0.0}, "t2-m0": {1.0}, "t3-m0": {0.0}}


async def test_a_sampler_that_cuts_off_is_compared_over_the_whole_vocabulary(tmp_path: Path) -> None:
    bus, recorder = await played((1.0, 0.0)), Recorder()
    grpo = ObjectiveConfig(adv_estimator="grpo", loss_type="clipped", group_size=2)
    await train(bus, tmp_path, recorder, grpo, num_iterations=1, batch=2, algorithm=KEEPS_UNCHANGED, policy=CUT)
    for item in recorder.items:
        assert item.targets.behaviour == pytest.approx(item.sample.logprobs - CUT_OFF)
        assert item.targets.behaviour == pytest.approx(item.targets.proximal), "the same weights"


async def test_the_gate_leaves_greedy_baselines_out(tmp_path: Path) -> None:
    """Their sampler cuts nothing off, whatever is configured: the trainer's cut-off log-probabilities are not theirs."""
    bus, recorder = await played((1.0, 0.0), greedy=0), Recorder()
    remax = ObjectiveConfig(adv_estimator="remax", loss_type="clipped")
    await train(bus, tmp_path, recorder, remax, num_iterations=1, batch=2, algorithm=KEEPS_UNCHANGED, policy=CUT)
    (found,) = metrics(tmp_path)
    assert found["mismatch_samples"] == found["fresh_samples"] == len(recorder.items)


async def test_cloning_with_weights_knows_the_proximal_policy_and_nothing_unparsed(tmp_path: Path) -> None:
    bus, recorder = await played((1.0, 0.0), (1.0, 1.0)), Recorder()
    weighted = ObjectiveConfig(loss_type="weighted_cloning")
    await train(bus, tmp_path, recorder, weighted, num_iterations=1, batch=4, algorithm=KEEPS_UNCHANGED, policy=CUT)
    assert episodes(recorder) <= {"t0-m0", "t1-m0", "t1-m1"}
    assert recorder.items
    for item in recorder.items:
        assert item.targets.proximal == pytest.approx(item.sample.logprobs - CUT_OFF)
        assert item.targets.behaviour == pytest.approx(item.targets.proximal)
    assert metrics(tmp_path)[0]["left_out_unparsed"] > 0


async def test_an_answer_is_imitated_whatever_the_page_shows_behind_it(tmp_path: Path) -> None:
    """A step that changed nothing is left out, but not the one that ends the episode."""
    bus, recorder, task = MemoryBus(SUBJECTS), Recorder(), member_task(0, 0)
    await chain.admit(bus, SUBJECTS, task)
    owner = await chain.EpisodeChain.take(bus, SUBJECTS, task, builders.WORKER)
    assert isinstance(owner, chain.EpisodeChain)
    click, wait, answer = (Action(kind=kind) for kind in (ActionKind.CLICK, ActionKind.WAIT, ActionKind.ANSWER))
    for step, actions in enumerate([(click,), (click, wait), (wait, answer), ()]):
        seen = structs.replace(builders.observation(task, step), same_screenshot=step > 0)
        seq = await owner.observe(seen)
        if actions:
            said = structs.replace(builders.step_request(task, step), action=actions[0], further=actions[1:])
            owner.answered(await chain.answer(bus, SUBJECTS, seq, said))
    done = builders.trajectory(task, outcome=Outcome.ANSWERED, num_steps=3, num_observations=4)
    await owner.finish(done)
    await judge(bus, done)
    await train(bus, tmp_path, recorder, ObjectiveConfig(), num_iterations=1, batch=1)
    assert [item.sample.ref.step for item in recorder.items] == [2]
    assert metrics(tmp_path)[0]["left_out_unchanged"] == 2


async def test_what_the_policy_hardly_dared_is_not_imitated(tmp_path: Path) -> None:
    """Whole answers of a probability below 1/2 are left out; a policy gradient learns from them."""
    dares = replace(KEEPS_UNCHANGED, min_answer_probability=0.5)
    cloning, rloo = ObjectiveConfig(), ObjectiveConfig(adv_estimator="rloo", loss_type="reinforce", group_size=2)
    found = dict[str, Recorder]()
    for name, objective, algorithm in (
        ("all", cloning, KEEPS_UNCHANGED),
        ("likely", cloning, dares),
        ("gradients", rloo, dares),
    ):
        bus = await played(*[(1.0, 0.0)] * 8)
        await train(
            bus,
            tmp_path / name,
            found.setdefault(name, Recorder()),
            objective,
            num_iterations=1,
            batch=16,
            algorithm=algorithm,
        )
    likely = {item.sample.ref for item in found["all"].items if item.sample.logprobs.sum() >= np.log(0.5)}
    assert {item.sample.ref for item in found["likely"].items} == likely
    (told,) = metrics(tmp_path / "likely")
    assert told["left_out_unlikely"] == len(found["all"].items) - len(likely) > 0 < len(likely)
    assert "left_out_unlikely" not in metrics(tmp_path / "gradients")[0]
    assert found["gradients"].items


async def test_the_validation_split_is_measured_and_not_trained_on(tmp_path: Path) -> None:
    groups = [(1.0,)] * 8
    held_out = {f"t{group}-m0" for group in range(8) if is_held_out(member_task(group, 0).task, 0.5)}
    assert 0 < len(held_out) < 8
    bus, recorder = await played(*groups), Recorder()
    split = AlgorithmConfig(num_train_epochs=1, filter_same_screenshot=False, val_split_ratio=0.5)
    await train(bus, tmp_path, recorder, ObjectiveConfig(), num_iterations=1, batch=8, algorithm=split)
    assert not episodes(recorder) & held_out
    (found,) = metrics(tmp_path)
    assert found["val_samples"] > 0
    assert CUT_OFF < found["val_loss"] < 1.0 + CUT_OFF, "random log-probabilities between -1 and 0, less what is cut off"


def test_about_a_share_of_the_tasks_is_held_out() -> None:
    tasks = [member_task(group, 0).task for group in range(2000)]
    assert sum(is_held_out(task, 0.05) for task in tasks) == pytest.approx(100, abs=35)
    assert not any(is_held_out(task, 0.0) for task in tasks)
