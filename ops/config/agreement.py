"""Checks what a configuration names against the parts there are, and its keys against what these parts read."""

from collections.abc import Callable
from importlib.util import find_spec

from agents.action_space import ActionSpace
from agents.prompt_file import is_prompt_file
from schemas.config import Config
from schemas.extensions import (
    AUGMENTATIONS,
    BLOCK_HOOKS,
    ESTIMATORS,
    JUDGES,
    KINDS,
    LOSSES,
    PROMPTS,
    SAMPLERS,
    VOCABULARIES,
    Kind,
)
from schemas.requirement import require

_NAMED: tuple[tuple[Kind, Callable[[Config], str]], ...] = (
    (ESTIMATORS, lambda config: config.objective_config.adv_estimator),
    (LOSSES, lambda config: config.objective_config.loss_type),
    (AUGMENTATIONS, lambda config: config.algorithm_config.augmentation),
    (SAMPLERS, lambda config: config.env_config.train_tasks_sampler),
    (PROMPTS, lambda config: config.model_config.prompt_version),
    (VOCABULARIES, lambda config: config.context_config.actions),
)

_ONE_CALL = ("vanilla", "complete")
"""Prompts that say so."""


def kind_of(key: str) -> Kind | None:
    """The kind of part that a key names; None: it names none."""
    return next((kind for kind in KINDS if kind.setting == key), None)


def require_known_parts(config: Config) -> None:
    """Raises `ConfigurationError` where a name stands for no part. Imports nothing."""
    for kind, named in _NAMED:
        if not (kind is PROMPTS and is_prompt_file(named(config))):
            kind.require_known(named(config))
    if config.browser_config.on_block == "hook":
        BLOCK_HOOKS.require_known(config.browser_config.block_hook)
    judging = config.judge_config
    for name, composite in judging.composites.items():
        require(
            name not in JUDGES.builtin,
            f"judge_config.composites: {name} is a judge of Millrace: give the composite another name",
        )
        for part in composite.parts.keys() - judging.composites.keys():
            JUDGES.require_known(part, written_in=f"judge_config.composites.{name}.parts")
    if judging.judge not in judging.composites:
        JUDGES.require_known(judging.judge)


def require_answers(config: Config) -> None:
    """How the model is asked goes with how its answers are read. A vocabulary of one's own is not looked at: it may be away.

    Raises:
        ConfigurationError: the tool has no words for the targets, demonstrations would lose calls, or the prompt asks for one
            call where several are read.
    """
    context, version = config.context_config, config.model_config.prompt_version
    require(
        context.max_calls == 1 or version not in _ONE_CALL,
        f"context_config.max_calls is {context.max_calls}, and the prompt {version} asks for one call: write 1, or openwebrl "
        "(in XML openwebrl_xml) or a prompt of your own for model_config.prompt_version",
    )
    if context.actions not in VOCABULARIES.builtin:
        return
    needed = ActionSpace.of(context).tool.most_calls
    require(
        context.max_calls >= needed or not config.feeder_config.demonstrate,
        f"feeder_config.demonstrate is true, and a demonstration of the {context.actions} actions answers with up to {needed} "
        f"calls, of which context_config.max_calls leaves {context.max_calls}: write {needed} or more for it",
    )


def require_agreement(config: Config) -> None:
    """Imports the parts of the objective. A machine without the packages of feeder and trainer leaves it to those roles.

    Raises:
        ConfigurationError: the parts do not go together, or a key has no effect with them.
    """
    if find_spec("numpy") is None:
        return
    from trainer.estimators import num_members
    from trainer.losses import may_augment
    from trainer.objective import agreement

    objective, augmentation = config.objective_config, config.algorithm_config.augmentation
    agreement.require_agreement(objective)
    require(
        augmentation == "none" or may_augment(objective),
        f"algorithm_config.augmentation is {augmentation}, and the objective keeps tokens near the policy that sampled them, "
        "or near a reference, which nobody knows of another sample: write none for it, or for objective_config.loss_type "
        "behaviour_cloning, reinforce, decoupled or truncated (with proximal: forward), without a divergence",
    )
    size, members = config.env_config.train_tasks_rollout_size, num_members(config.objective_config)
    require(
        size % members == 0 or config.feeder_config.mode in ("offline", "eval") or config.feeder_config.demonstrate,
        f"env_config.train_tasks_rollout_size is {size}, which is no multiple of a group's {members} episodes "
        f"(objective_config.group_size, and one more for a greedy baseline): write {max(1, round(size / members)) * members}",
    )
