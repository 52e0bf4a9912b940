"""Checks that the keys of `objective_config` agree with the estimator and the loss that it names."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

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
    "kl_loss_coef",
    "kl_reward_coef",
    "length_normaliser",
    "loss_agg_mode",
    "overlong_buffer_len",
    "pass_rate_weights",
    "reward_clip",
    "reward_scale",
)
"""Keys that switch on what is done with whichever estimator's advantages. Mere settings of that, as `length_constant` is, and
what recipes say for whichever objective is chosen, as `critic`, may stand there: `ops.config.idle_keys` notes them."""


@dataclass(frozen=True)
class _Reader:
    """Which parts a key has an effect with."""

    kind: Kind
    reads: Callable[[Any], bool]
    """Of the part's traits."""


_READERS = {
    "normalize_advantages": _Reader(ESTIMATORS, lambda traits: not traits.whitens),
    "use_multi_turn_reward": _Reader(ESTIMATORS, lambda traits: traits.by_token),
    "success_replay": _Reader(ESTIMATORS, lambda traits: traits.compares),
    "early_stop_imp_ratio": _Reader(LOSSES, lambda traits: traits.ratio),
    "rejection_level": _Reader(LOSSES, lambda traits: traits.ratio),
    "proximal": _Reader(LOSSES, lambda traits: traits.proximal),
}
"""Keys of what is done around an estimator or a loss, where that depends on its traits. What it reads itself are its
parameters."""


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
    for name, kind in _without_effect(config):
        key = kind.setting.removeprefix(_KEY)
        raise ConfigurationError(
            f"{_KEY}{name} is {getattr(config, name)}, and has no effect where {key} is {getattr(config, key)}: leave it out"
            f"{_instead(name)}"
        )


def _without_effect(config: ObjectiveConfig) -> Iterator[tuple[str, Kind]]:
    """Names of the keys that were changed in vain, each with the kind of the part that knows nothing of it."""
    defaults = ObjectiveConfig()
    changed = {each.name for each in fields(config) if getattr(config, each.name) != getattr(defaults, each.name)}
    if config.imitates:
        yield from ((name, ESTIMATORS) for name in _OF_ADVANTAGES if name in changed)
    chosen = {ESTIMATORS: config.adv_estimator, LOSSES: config.loss_type}
    for name, reader in _READERS.items():
        if name in changed and not _reads(reader, chosen[reader.kind]):
            yield name, reader.kind
    for kind, part in chosen.items():
        known = {name for each in kind.builtin for name in _settings(kind, each)}
        yield from ((name, kind) for name in sorted(known & changed - set(_settings(kind, part))))


def _reads(reader: _Reader, part: str) -> bool:
    return part not in reader.kind.also and reader.reads(reader.kind.find(part).traits)


def _settings(kind: Kind, name: str) -> tuple[str, ...]:
    return () if name in kind.also else settings_of(kind.find(name).made)


def _instead(name: str) -> str:
    """Which choices know the key."""
    if name in _OF_ADVANTAGES:
        return ", or write an estimator for adv_estimator"
    if (reader := _READERS.get(name)) is not None:
        kind = reader.kind
        found = [each for each in kind.builtin if _reads(reader, each)]
    else:
        kind = next(kind for kind in (ESTIMATORS, LOSSES) if any(name in _settings(kind, each) for each in kind.builtin))
        found = [each for each in kind.builtin if name in _settings(kind, each)]
    choices = f"{', '.join(found[:-1])}{' or ' * (len(found) > 1)}{found[-1]}"
    return f", or write {choices} for {kind.setting.removeprefix(_KEY)}"


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
