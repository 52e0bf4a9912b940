"""Says which imported values cannot stand together, so that what is written loads. Pure."""

from collections.abc import Mapping, Sequence
from functools import cache

from ops.config.agreement import require_agreement, require_known_parts
from ops.config.elsewhere.answer import Answer
from ops.config.elsewhere.row import IN_FILE
from ops.config.loading import written
from ops.config.schema import build_config
from ops.config.translation import translated
from schemas.errors import ConfigurationError
from schemas.extensions import KINDS

_NAMES_A_PART = {kind.setting for kind in KINDS}
_TOGETHER = {
    "objective_config.adv_estimator",
    "objective_config.loss_type",
    "objective_config.group_size",
    "env_config.train_tasks_rollout_size",
    "policy_config.max_model_len",
    "policy_config.max_new_tokens",
}
"""Keys of which one alone may be refused beside what a recipe says of the others."""


def refused(recipe: str, given: Sequence[Answer]) -> dict[int, str]:
    """Which answers' values are left out, each with why.

    First those go in that are judged together, then each other one where it may.
    """
    base = _base(recipe)
    if _complaint(base, given) is None:
        return {}
    taken = [index for index, answer in enumerate(given) if answer.ours.keys() & _TOGETHER]
    while taken and _complaint(base, [given[index] for index in taken]):
        # One that mends it where there is one, else the last.
        rests = [[other for other in taken if other != index] for index in reversed(taken)]
        taken = next((rest for rest in rests if not _complaint(base, [given[index] for index in rest])), taken[:-1])
    waiting = {index: "" for index, answer in enumerate(given) if answer.ours and index not in taken}
    was = -1
    while was != len(waiting):
        was = len(waiting)
        for index in list(waiting):
            names_a_part = bool(given[index].ours.keys() & _NAMES_A_PART)
            complaint = _complaint(base, [given[at] for at in sorted((*taken, index))], parts=names_a_part)
            if complaint is None:
                taken.append(index)
                del waiting[index]
            else:
                waiting[index] = complaint
    return waiting


def _complaint(base: Mapping[str, object], found: Sequence[Answer], *, parts: bool = True) -> str | None:
    """Why a configuration of these values would not load.

    Args:
        parts: whether installed packages are asked for the parts that are named, which takes longer than all else.
    """
    try:
        config = build_config(translated(merged(base, found)).tree)
        require_agreement(config)
        if parts:
            require_known_parts(config)
    except ConfigurationError as error:
        return str(error)
    return None


@cache
def _base(recipe: str) -> Mapping[str, object]:
    return written(recipe)


def merged(base: Mapping[str, object], found: Sequence[Answer]) -> dict[str, object]:
    """The values put into a tree, without those of the DeepSpeed file."""
    tree = _copied(base)
    for answer in found:
        for key, value in answer.ours.items():
            if not key.startswith(IN_FILE):
                put(tree, key, value)
    return tree


def put(tree: dict[str, object], key: str, value: object) -> None:
    *groups, name = key.split(".")
    inner = tree
    for group in groups:
        below = inner.get(group)
        if not isinstance(below, dict):
            below = inner[group] = {}
        inner = below
    inner[name] = value


def _copied(tree: Mapping[str, object]) -> dict[str, object]:
    return {key: _copied(value) if isinstance(value, Mapping) else value for key, value in tree.items()}
