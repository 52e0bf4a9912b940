"""Counts what their keys count in other units: prompts, trajectories and training steps there, episodes and steps here. Pure.

Here a sample is one step of an episode, and an optimizer step takes `per_device_train_batch_size` times
`gradient_accumulation_steps` of them on each rank; elsewhere a sample is mostly a whole trajectory. How many steps one has is
not known before it is played, so the largest number is counted: there are at most as many optimizer steps as there.
"""

import math
import re

from ops.config.elsewhere.conversions import only_where, only_with
from ops.config.elsewhere.row import Convert, Kind, Said, Several
from ops.config.elsewhere.written import Unfit, Written, number, truth, whole
from schemas.env_config import EnvConfig

_GROUP = (
    "agent.run_config.num_chains",
    "agent.num_chains",
    "rollout_manager.n_trajectory",
    "actor_rollout_ref.rollout.n",
    "algorithm.group_size",
)
_OWN_TURNS = (
    "agent.run_config.max_turns",
    "agent.max_turns",
    "rollout_manager.max_turns",
    "agentloop.max_turns",
    "env.train.max_episode_steps",
)
SEVERAL = "actor_rollout_ref.rollout.multi_turn.enable"
_VERLS_TURNS = "actor_rollout_ref.rollout.multi_turn.max_assistant_turns"
_RECIPES_CAP = EnvConfig.train_difficulty_max_steps.hard
_PROMPTS = ("data.train_batch_size", "data.rollout_batch_size")
_MICRO = (
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
    "algorithm.training_batch_size_per_gpu",
    "actor.micro_batch_size",
)
_ESTIMATORS = ("algorithm.adv_estimator", "algorithm.adv_type")
ITERATIONS = ("trainer.total_training_steps", "runner.max_steps")
_MINI = "actor_rollout_ref.actor.ppo_mini_batch_size"
_MINIBATCHES = "algorithm.n_minibatches"
_GPUS_A_NODE = 8
_OUR_MICRO = 3


def group_size(written: Written) -> int:
    """Episodes of a task."""
    return max(1, int(written.number(*_GROUP) or 1))


def members(written: Written) -> int:
    """The same, with the greedy one of ReMax."""
    return group_size(written) + (written.get(*_ESTIMATORS) == "remax")


def group(value: object, written: Written) -> object:
    size = group_size(written)
    if whole(value) != size:
        return Said(Kind.NOTHING, f"another key says how many episodes a task has: {size}")
    return size


def episodes(value: object, written: Written) -> object:
    """Of prompts."""
    prompts, each = whole(value), members(written)
    words = f"{prompts} prompts of {each} {'episodes' if each > 1 else 'episode'} each"
    return Several({"env_config.train_tasks_rollout_size": prompts * each}, words)


def environments(value: object, written: Written) -> object:
    """Simulators that run side by side, each of which plays one episode in each of so many rounds."""
    count, rounds = whole(value), int(written.number("env.train.rollout_epoch", "algorithm.rollout_epoch") or 1)
    each = members(written)
    total = max(1, count * rounds // each) * each
    told = f"{count} at once, {rounds} {'rounds' if rounds > 1 else 'round'} an iteration"
    if written.get(*_PROMPTS) is not None:
        return Several({"env_config.server_size": count})
    return Several({"env_config.server_size": count, "env_config.train_tasks_rollout_size": total}, told)


def ranks(written: Written) -> int:
    """Training processes, one a GPU."""
    if written.number("trainer.n_gpus_per_node") is not None:
        return int(written.number("trainer.n_gpus_per_node") or 1) * int(written.number("trainer.nnodes") or 1)
    for key in written.values:
        if key.startswith("cluster.component_placement.") and "actor" in key.rpartition(".")[2]:
            return _places(str(written.get(key))) or _GPUS_A_NODE * int(written.number("cluster.num_nodes") or 1)
    return 1


def _places(text: str) -> int:
    """Of RLinf's `0-3,5,14`; 0 for `all`."""
    found = re.findall(r"(\d+)(?:-(\d+))?", text.partition(":")[0])
    return sum(int(last or first) - int(first) + 1 for first, last in found)


def cap(written: Written) -> int | None:
    """Steps that an episode has at most; None where no number is written, so that the recipe's stays."""
    if found := written.number(*_OWN_TURNS):
        return max(1, int(found))
    if written.true(SEVERAL):
        return int(written.number(_VERLS_TURNS) or 0) or None
    return None if plays_simulators(written) else 1


def plays_simulators(written: Written) -> bool:
    return str(written.get("runner.task_type")).startswith("embodied") or any(
        key.endswith("max_episode_steps") for key in written.values
    )


def turns(written: Written) -> int:
    return cap(written) or _RECIPES_CAP


def single_turn(value: object, written: Written) -> object:
    """verl's switch: without it an episode is one answer."""
    if truth(value):
        return Said(Kind.SAME, "an episode has as many steps as it takes, up to its cap")
    return Said(Kind.NOTHING, "another key says how many") if written.number(*_OWN_TURNS) else all_caps(1, written)


def caps(*splits: str) -> Convert:
    """One cap for all difficulties."""

    def convert(value: object, _: Written) -> object:
        keys = [f"{CAPS_OF.format(split)}.{each}" for split in splits for each in ("easy", "medium", "hard")]
        return Several(dict.fromkeys(keys, whole(value)))

    return convert


CAPS_OF = "env_config.{}_difficulty_max_steps"
CAPS = tuple(map(CAPS_OF.format, ("train", "test")))
all_caps = caps("train", "test")
verls_turns = only_with(SEVERAL, all_caps)
loops_turns = only_where(lambda written: not plays_simulators(written), "simulators have a number of their own", all_caps)
"""RLinf's."""


def answer_length(value: object, written: Written) -> object:
    """verl's: it covers a whole episode where that has several turns."""
    if cap(written) == 1:
        return whole(value)
    return Said(
        Kind.INSTEAD,
        "write policy_config.max_new_tokens, which is of one step's answer: there it is of all answers and "
        "observations of an episode",
    )


def micro_batch(written: Written) -> int:
    return max(1, int(written.number(*_MICRO) or _OUR_MICRO))


def _updates(written: Written) -> int:
    """Optimizer steps of one pass over what an iteration plays."""
    if (minibatches := written.number(_MINIBATCHES)) is not None:
        return max(1, int(minibatches))
    if batch := written.number("actor.global_batch_size"):
        return max(1, round(_simulated_samples(written) / batch))
    prompts, mini = written.number(*_PROMPTS), written.number(_MINI)
    if prompts is None or not mini:
        return 1
    return max(1, round(prompts * group_size(written) / _trajectories(mini, written)))


def _simulated_samples(written: Written) -> float:
    """Of an iteration of RLinf's, each of which is an answer with several actions."""
    steps = written.number("env.train.max_steps_per_rollout_epoch", "env.train.max_episode_steps") or 0
    actions = written.number("actor.model.num_action_chunks") or 1
    rounds = written.number("env.train.rollout_epoch", "algorithm.rollout_epoch") or 1
    return (written.number("env.train.total_num_envs") or 0) * rounds * steps / actions


def critics_iterations(value: object, written: Written) -> object:
    """Of optimizer steps in which RLinf trains the critic alone."""
    found, each = whole(value), optimizer_steps(written)
    words = f"{found} optimizer steps, of which an iteration has {each}"
    return Several({"objective_config.critic.warmup_iterations": math.ceil(found / each)}, words)


def _trajectories(mini: float, written: Written) -> float:
    """verl counts prompts, each with `rollout.n` responses; where agents play, that is 1 and trajectories are counted."""
    return mini * (written.number("actor_rollout_ref.rollout.n") or 1)


def optimizer_steps(written: Written) -> int:
    """Of one iteration."""
    passes = int(written.number("actor_rollout_ref.actor.ppo_epochs", "algorithm.update_epoch") or 1)
    return _updates(written) * max(1, passes)


def accumulation(value: object, written: Written) -> object:
    """Of a mini-batch of verl's."""
    return _accumulated(_trajectories(number(value), written), written)


def accumulation_of_minibatches(value: object, written: Written) -> object:
    """Of RLinf's number of mini-batches."""
    prompts = written.number("data.rollout_batch_size")
    if prompts is None:
        return Said(
            Kind.INSTEAD, "write algorithm_config.gradient_accumulation_steps: the batch that is divided is not written"
        )
    return _accumulated(prompts * group_size(written) / max(1, whole(value)), written)


def accumulation_of_samples(value: object, written: Written) -> object:
    """Of a batch that counts steps already."""
    return _steps(number(value), written, f"{whole(value)} samples")


def _accumulated(trajectories: float, written: Written) -> object:
    each = turns(written)
    said = f"{trajectories:g} trajectories of up to {each} steps" if each > 1 else f"{trajectories:g} trajectories of one step"
    return _steps(trajectories * each, written, said)


def _steps(samples: float, written: Written, said: str) -> object:
    micro, count = micro_batch(written), ranks(written)
    steps = max(1, math.ceil(samples / (micro * count)))
    words = f"{said}, in micro-batches of {micro} on {count} {'ranks' if count > 1 else 'rank'}"
    return Several({"algorithm_config.gradient_accumulation_steps": steps}, words)


def iterations(value: object, _: Written) -> object:
    found = whole(value)
    return found if found > 0 else Said(Kind.NOTHING, "passes over the tasks are counted instead")


def iterations_or_usual(value: object, _: Written) -> object:
    found = whole(value)
    return found if found > 0 else Said(Kind.SAME, "every version is kept for a while, the last one of a run for good")


def at_least_one(value: object, _: Written) -> object:
    found = whole(value)
    return (
        found
        if found > 0
        else Said(Kind.NOTHING, "pages of sampled episodes are written every log_config.table_every versions")
    )


def passes_over_tasks(value: object, written: Written) -> object:
    """Of epochs over the data."""
    if (total := written.number(*ITERATIONS)) and total > 0:
        return Said(Kind.NOTHING, f"the number of iterations is written: {int(total)}")
    prompts = written.number(*_PROMPTS)
    divided = f", divided by {prompts:g} a batch" if prompts else ""
    return Said(Kind.INSTEAD, f"write feeder_config.num_iterations: {number(value):g} times the tasks of the file{divided}")


def sequence_length(prompt: str, answer: str) -> Convert:
    """Prompt and answer together."""

    def convert(value: object, written: Written) -> object:
        other = written.number(answer)
        if other is None:
            raise Unfit("counts with the length of an answer, which is not written")
        total = whole(value) + int(other)
        return Several(dict.fromkeys(LENGTH, total), f"{whole(value)} of {prompt.rpartition('.')[2]} and {int(other)}")

    return convert


def length(value: object, _: Written) -> object:
    return Several(dict.fromkeys(LENGTH, whole(value)))


LENGTH = ("policy_config.max_model_len", "algorithm_config.cutoff_len")


def epochs(value: object, written: Written) -> object:
    """RLinf's: where simulators play there is no data to pass over, and one epoch is one iteration."""
    if written.get("runner.task_type") != "embodied":
        return passes_over_tasks(value, written)
    limit = written.number(*ITERATIONS)
    return int(limit) if limit and limit > 0 else whole(value)


def rounds(value: object, written: Written) -> object:
    """Of simulators."""
    count = written.number("env.train.total_num_envs")
    if count is None:
        return Said(Kind.INSTEAD, "write env_config.train_tasks_rollout_size: how many simulators play is not written")
    return environments(int(count), written)
