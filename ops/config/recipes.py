"""The committed configuration files: recipes, and objectives that any recipe may be combined with. Loads at once."""

from pathlib import Path

RECIPES = Path(__file__).parent / "recipes"
OBJECTIVES = RECIPES / "objective"


def recipe_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in RECIPES.glob("*.yaml")))


def objective_names() -> tuple[str, ...]:
    """What `objective=` chooses from: settings of `objective_config` that belong together."""
    return tuple(sorted(path.stem for path in OBJECTIVES.glob("*.yaml")))
