"""Checks that the keys of `objective_config` agree with the estimator and the loss that it names."""

from collections.abc import Iterator
from dataclasses import fields

from schemas.errors import ConfigurationError
from schemas.extensions import ESTIMATORS, LOSSES, Kind
from schemas.objective_config import ObjectiveConfig
from schemas.part_settings import settings_of
from schemas.requirement import require
from trainer.estimators import traits_of
from trainer.losses import loss_part

_KEY = "objective_config."
_OF_ADVANTAGES = (
    "dynamic_sampling",
    "length_normaliser",
    "use_multi_turn_reward",
    "kl_loss_coef",
    "kl_reward_coef",
    "loss_agg_mode",
)
"""Keys that switch on what is done with whichever estimator's advantages. Mere settings of that, as `critic` and
`negative_advantage_scale` are, may stand there for when it is on."""


def require_agreement(config: ObjectiveConfig) -> None:
    """Imports the estimator and the loss.

    Raises:
        ConfigurationError: there is no such estimator or loss, they do not go together, or a key has no effect with them.
    """
    traits, loss = traits_of(config), loss_part(config).traits
    require(
        loss.imitates == config.imitates,
        f"{_KEY}adv_estimator is {config.adv_estimator} and {_KEY}loss_type is {config.loss_type}: cloning goes with none, "
        f"the other losses ({', '.join(_losses(imitates=False))}) with an estimator",
    )
    require(
        not traits.compares or config.group_size >= 2,
        f"{_KEY}adv_estimator is {config.adv_estimator}, which compares episodes of one task, and {_KEY}group_size is "
        f"{config.group_size}: write 2 or more (8 is usual)",
    )
    _require_known_settings(config)
    for name, choice in _without_effect(config):
        raise ConfigurationError(
            f"{_KEY}{name} is {getattr(config, name)}, and has no effect where {choice}: leave it out{_instead(name)}"
        )


def _without_effect(config: ObjectiveConfig) -> Iterator[tuple[str, str]]:
    """Names of the keys that were changed in vain, each with the choice that knows nothing of it."""
    defaults = ObjectiveConfig()
    changed = {each.name for each in fields(config) if getattr(config, each.name) != getattr(defaults, each.name)}
    by_estimator, by_loss = f"adv_estimator is {config.adv_estimator}", f"loss_type is {config.loss_type}"
    if config.imitates:
        yield from ((name, by_estimator) for name in _OF_ADVANTAGES if name in changed)
    if "early_stop_imp_ratio" in changed and not loss_part(config).traits.ratio:
        yield "early_stop_imp_ratio", by_loss
    for kind, chosen, choice in ((ESTIMATORS, config.adv_estimator, by_estimator), (LOSSES, config.loss_type, by_loss)):
        known = {name for part in kind.builtin for name in _settings(kind, part)}
        yield from ((name, choice) for name in sorted(known & changed - set(_settings(kind, chosen))))


def _settings(kind: Kind, name: str) -> tuple[str, ...]:
    return () if name in kind.also else settings_of(kind.find(name).made)


def _instead(name: str) -> str:
    """Which choices know the key."""
    if name in _OF_ADVANTAGES:
        return ", or write an estimator for adv_estimator"
    if name == "early_stop_imp_ratio":
        found, key = [each for each in LOSSES.builtin if LOSSES.find(each).traits.ratio], "loss_type"
    else:
        kind = next(kind for kind in (ESTIMATORS, LOSSES) if any(name in _settings(kind, each) for each in kind.builtin))
        found, key = [each for each in kind.builtin if name in _settings(kind, each)], kind.setting.removeprefix(_KEY)
    return f", or write {', '.join(found[:-1])}{' or ' * (len(found) > 1)}{found[-1]} for {key}"


def _losses(*, imitates: bool) -> list[str]:
    return [name for name in LOSSES.builtin if LOSSES.find(name).traits.imitates == imitates]


def _require_known_settings(config: ObjectiveConfig) -> None:
    keys = {each.name for each in fields(config)}
    known = {*_settings(ESTIMATORS, config.adv_estimator), *_settings(LOSSES, config.loss_type)} - keys
    for name in config.settings:
        require(
            name in known,
            f"{_KEY}settings.{name}: neither {config.adv_estimator} nor {config.loss_type} has a setting of that name; "
            + (f"they have {', '.join(sorted(known))}" if known else "they have none beside the keys of objective_config"),
        )
