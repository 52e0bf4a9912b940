"""What the quickstart teaches: its families of pages, each with its material and its warm start; loads without torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal, get_args

from ops.config.loading import load_config
from schemas.config import Config
from schemas.errors import ConfigurationError
from trainer.losses import loss_part, may_augment

THOUGHT = "Click the button."
"""The sentence that every demonstration of a button says."""
GRID = 10
"""Demonstrated coordinates are multiples of this, so that the last digit is soon learnt."""

Observe = Literal["pixels", "marks"]
"""How a page is seen and acted on: as a picture by coordinates, or as a list of elements by their numbers."""
OBSERVE: Final[tuple[Observe, ...]] = get_args(Observe)


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """When to look, and when to stop."""

    target_success: float
    """Mean over pages: share of the demonstrated episodes kept out whose every step is answered rightly."""
    num_worst: int = 0
    """Pages that count, those it does worst; 0: all. What no answer comes right on, reward alone does not teach."""
    num_kept_out: int
    """Episodes."""
    updates_between: int
    """Optimizer steps between two looks."""
    max_updates: int
    """Then it goes on with what there is."""
    cooling_updates: int = 0
    """Optimizer steps behind the target, at a rate that falls: at the full one a page rises and falls from look to look."""
    learning_rate: float
    batch_size: int = 0
    """Samples of an optimizer step; 0: as many as in learning from reward."""
    augmentation: str = "none"
    """What becomes of a demonstration every time that it is seen (`trainer.augmentations`)."""

    def success(self, pages: Mapping[str, float]) -> float:
        """What is compared with the target."""
        return fmean(sorted(pages.values())[: self.num_worst or None])


@dataclass(frozen=True, kw_only=True)
class Family:
    """Pages of one kind, observed in one way."""

    name: str
    observe: Observe = "marks"
    recipe: str
    """Configuration for filtered cloning."""
    gradient_recipe: str
    """Configuration for every other objective."""
    num_demonstrations: int
    num_train: int = 0
    """Different training tasks; 0: one for every episode."""
    num_held_out: int
    """Episodes of an evaluation round on the pages that are learnt."""
    suite: Literal["demo", "miniwob", "frozen_lake", "sokoban"]
    """Whose pages they are."""
    pages: tuple[str, ...] = ()
    """Of the suite; of grids, their sizes."""
    parameters: str = ""
    """Of every website, where it is one of grids or of the quickstart's own."""
    signs: tuple[str, ...] = ()
    """Of a map in letters: each is read as a token of its own."""
    unseen_pages: tuple[str, ...] = ()
    """Further pages, which no phase but the evaluation plays."""
    num_unseen: int = 0
    """Their episodes of an evaluation round."""
    bar: float = 0.80
    """Held-out success that the quickstart is built to reach."""
    warm_start: WarmStart


_RENAMED: Final = "ops.quickstart.renaming:renamed_words"
_TURNED: Final = "ops.quickstart.turned_maps:turned_maps"
_BUTTONS = WarmStart(target_success=0.26, num_kept_out=200, updates_between=3, max_updates=240, learning_rate=2e-3)
_LABELS = WarmStart(
    target_success=0.43,
    num_kept_out=40,
    updates_between=2,
    max_updates=60,
    learning_rate=2e-3,
    augmentation=_RENAMED,
)
_GRIDS = WarmStart(
    target_success=0.05,
    num_kept_out=60,
    updates_between=5,
    max_updates=200,
    learning_rate=2.5e-3,
    augmentation=_TURNED,
)
_PAGES = (
    "choose-date-easy",
    "choose-list",
    "click-button",
    "click-button-sequence",
    "click-checkboxes",
    "click-collapsible-nodelay",
    "click-dialog",
    "click-dialog-2",
    "click-link",
    "click-option",
    "click-tab",
    "click-tab-2-easy",
    "click-test",
    "click-test-2",
    "enter-password",
    "enter-text",
    "enter-text-dynamic",
    "focus-text-2",
    "form-sequence-2",
    "login-user",
)
_UNSEEN = ("click-checkboxes-transfer", "click-collapsible-2-nodelay", "click-test-transfer", "focus-text", "login-user-popup")

_FAMILIES: Final = (
    Family(
        name="miniwob",
        recipe="quickstart_miniwob",
        gradient_recipe="quickstart_miniwob_policy_gradient",
        num_demonstrations=440,
        num_train=800,
        num_held_out=200,
        suite="miniwob",
        pages=_PAGES,
        unseen_pages=_UNSEEN,
        num_unseen=25,
        warm_start=WarmStart(
            target_success=0.05,
            num_worst=7,
            num_kept_out=80,
            updates_between=5,
            max_updates=120,
            cooling_updates=12,
            learning_rate=2e-3,
            batch_size=32,
            augmentation=_RENAMED,
        ),
    ),
    Family(
        name="frozen_lake",
        recipe="quickstart_grids",
        gradient_recipe="quickstart_grids_policy_gradient",
        num_demonstrations=200,
        num_held_out=200,
        suite="frozen_lake",
        pages=("4x4",),
        parameters="text=on&step_reward=-0.01&approach_reward=2",
        signs=tuple("@_OG"),
        unseen_pages=("5x5",),
        num_unseen=50,
        warm_start=_GRIDS,
    ),
    Family(
        name="sokoban",
        recipe="quickstart_grids",
        gradient_recipe="quickstart_grids_policy_gradient",
        num_demonstrations=200,
        num_held_out=200,
        suite="sokoban",
        pages=("6x6",),
        parameters="text=on&step_reward=-0.01&box_reward=0.1",
        signs=tuple("@+$*.#_"),
        unseen_pages=("7x7",),
        num_unseen=50,
        warm_start=_GRIDS,
    ),
    Family(
        name="find_button",
        recipe="quickstart_button_marks",
        gradient_recipe="quickstart_miniwob_policy_gradient",
        num_demonstrations=120,
        num_held_out=200,
        suite="demo",
        pages=("find_button",),
        parameters="by=label",
        bar=0.95,
        warm_start=_LABELS,
    ),
    *(
        Family(
            name=name,
            observe="pixels",
            recipe="quickstart",
            gradient_recipe="quickstart_policy_gradient",
            num_demonstrations=700,
            num_held_out=100,
            suite="demo",
            pages=(name,),
            warm_start=_BUTTONS,
        )
        for name in ("click_button", "find_button")
    ),
)
FAMILIES: Final[Mapping[str, Family]] = {family.name: family for family in _FAMILIES}
"""By name, each in the way in which it is observed unless another is asked for."""


def lesson_config(family: Family, objective: str, overrides: Sequence[str]) -> Config:
    """The family's recipe for an objective; samples are varied where that objective knows no ratio."""
    asked = [f"objective={objective}"]
    if objective == "cloning":
        return load_config(family.recipe, [*asked, *overrides])
    learns_by = load_config(family.gradient_recipe, [*asked, *overrides]).objective_config
    if may_augment(learns_by) and not loss_part(learns_by).traits.ratio:
        asked.append(f"algorithm_config.augmentation={load_config(family.recipe).algorithm_config.augmentation}")
    return load_config(family.gradient_recipe, [*asked, *overrides])


def family_named(name: str, observe: str = "") -> Family:
    """
    Args:
        observe: empty: in the family's usual way.

    Raises:
        ConfigurationError: it is not observed in that way.
    """
    known: dict[str, Family] = {family.observe: family for family in _FAMILIES if family.name == name}
    found = known.get(observe or FAMILIES[name].observe)
    if found is None:
        raise ConfigurationError(
            f"the pages of {name} cannot be observed as {observe} yet: write --observe {' or '.join(known)}"
        )
    return found
