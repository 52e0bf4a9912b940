"""Composites by name: which judges one is made of in the end, and the judge that it becomes. No composite contains itself."""

from collections.abc import Mapping

from judges.composite import CompositeJudge
from judges.judge import Judge
from schemas.errors import ConfigurationError
from schemas.judge_config import Composite


def leaves(name: str, composites: Mapping[str, Composite]) -> tuple[str, ...]:
    """The judges that are no composites, each once, in the order in which they are first asked; `name` alone if it is none.

    Raises:
        ConfigurationError: a composite is made of itself.
    """
    return tuple(dict.fromkeys(_leaves(name, composites, ())))


def compose(name: str, composites: Mapping[str, Composite], judges: Mapping[str, Judge]) -> Judge:
    """The judge of that name, from those that `leaves` lists."""
    composite = composites.get(name)
    if composite is None:
        return judges[name]
    return CompositeJudge(name, composite, [compose(part, composites, judges) for part in composite.parts])


def _leaves(name: str, composites: Mapping[str, Composite], above: tuple[str, ...]) -> list[str]:
    composite = composites.get(name)
    if composite is None:
        return [name]
    if name in above:
        chain = " of ".join((*above[above.index(name) :], name))
        raise ConfigurationError(f"judge_config.composites: {name} is made of itself ({chain}): take one of these parts out")
    return [leaf for part in composite.parts for leaf in _leaves(part, composites, (*above, name))]
