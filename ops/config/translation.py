"""Translates a tree of WebGym's keys into ours. Pure: mappings in, mappings out.

Invariant: of what a person wrote nothing is dropped silently: it takes effect under a name, a note says that it has none, or
it is refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ops.config.webgym_keys import NOT_SET, SAME_AS, SPLIT, WITHOUT_EFFECT, WithoutEffect
from schemas.errors import ConfigurationError
from schemas.requirement import require

Tree = dict[str, object]
WHOLE_DISTRIBUTION: Mapping[str, object] = {"policy_config.top_k": -1, "policy_config.top_p": 1.0}


@dataclass(frozen=True, slots=True)
class Note:
    """A key that was written and has no effect."""

    key: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Translated:
    tree: Tree
    notes: tuple[Note, ...]


def translated(written: Mapping[str, object]) -> Translated:
    """Raises `ConfigurationError` for a key without effect that has a value of the person's own."""
    tree: Tree = {key: dict(value) if isinstance(value, Mapping) else value for key, value in written.items()}
    notes = [Note(key, sentence) for key, sentence in _left_open(tree)]
    for key, entry in WITHOUT_EFFECT.items():
        if has(tree, key):
            notes.append(Note(key, _without_effect(key, take(tree, key), entry)))
    _choose_judge(tree)
    for key, ours in SAME_AS.items():
        if has(tree, key):
            _move(tree, key, ours)
    _choose_mode(tree)
    _choose_sampling(tree)
    return Translated(tree, tuple(notes))


def _left_open(tree: Tree) -> Iterator[tuple[str, str]]:
    for key, values in NOT_SET.items():
        if has(tree, key) and any(_equal(get(tree, key), value) for value in values):
            yield key, f"{_shown(take(tree, key))} stands for nothing, so it is as if it were left out"


def _without_effect(key: str, value: object, entry: WithoutEffect) -> str:
    require(
        any(_equal(value, published) for published in entry.published),
        f"{key} is {_shown(value)}, and has no effect here: {entry.why}; {entry.instead}",
    )
    return f"has no effect here: {entry.why}"


def _move(tree: Tree, key: str, ours: str) -> None:
    value = take(tree, key)
    if has(tree, ours) and get(tree, ours) != value:
        raise ConfigurationError(
            f"{key} is {_shown(value)} and {ours}, which is the same here, is {_shown(get(tree, ours))}: write {ours} alone"
        )
    put(tree, ours, value)


def _choose_judge(tree: Tree) -> None:
    """Who names the models that judge wants them asked, unless he says who judges."""
    if "openai_config" in tree and not has(tree, "judge_config.judge"):
        put(tree, "judge_config.judge", "rubric_v1")


def _choose_sampling(tree: Tree) -> None:
    """A policy gradient compares whole distributions: nothing is cut off, unless a person says so."""
    key, engine = "objective_config.adv_estimator", "policy_config.engine"
    asks_endpoint = has(tree, engine) and get(tree, engine) == "openai"
    if has(tree, key) and get(tree, key) != "none" and not asks_endpoint:
        for name, all_of_them in WHOLE_DISTRIBUTION.items():
            if not has(tree, name):
                put(tree, name, all_of_them)


def _choose_mode(tree: Tree) -> None:
    """WebGym's split: of test tasks evaluation is made, of training tasks alone a collection."""
    if not has(tree, SPLIT):
        return
    split, ours = take(tree, SPLIT), "feeder_config.mode"
    require(split in ("train", "test"), f"{SPLIT} is {_shown(split)}: write train or test")
    if not has(tree, ours):
        if split == "test" or "algorithm_config" not in tree:
            put(tree, ours, "eval" if split == "test" else "rollout")
        return
    mode = get(tree, ours)
    require(
        (mode == "eval") == (split == "test"),
        f"{SPLIT} is {split} and {ours} is {mode}: write eval for the mode of the test split, another one for that of train",
    )


def has(tree: Mapping[str, object], key: str) -> bool:
    group, _, name = key.rpartition(".")
    inner = tree.get(group) if group else tree
    return isinstance(inner, Mapping) and name in inner


def get(tree: Mapping[str, object], key: str) -> object:
    group, _, name = key.rpartition(".")
    inner = tree[group] if group else tree
    assert isinstance(inner, Mapping), "only what the tree has is asked for"
    return inner[name]


def take(tree: Tree, key: str) -> object:
    group, _, name = key.rpartition(".")
    inner = tree[group] if group else tree
    assert isinstance(inner, dict), "groups were copied as dictionaries"
    return inner.pop(name)


def put(tree: Tree, key: str, value: object) -> None:
    group, _, name = key.rpartition(".")
    inner = tree.setdefault(group, {}) if group else tree
    assert isinstance(inner, dict), "groups were copied as dictionaries"
    inner[name] = value


def _equal(value: object, other: object) -> bool:
    """Numbers by value; true is not 1."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _shown(value: object) -> str:
    return "null" if value is None else str(value) if isinstance(value, int | float | list) else repr(value)
