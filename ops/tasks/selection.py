"""Which of the prepared tasks are taken. Pure."""

from dataclasses import dataclass
from random import Random

from schemas.env_config import difficulty_class
from schemas.errors import ConfigurationError
from schemas.site import site_of
from trainer.feeding.task_files import TaskSpec

_CLASSES = ("easy", "medium", "hard", "unknown")


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Empty: all of them."""

    splits: frozenset[str] = frozenset()
    sites: frozenset[str] = frozenset()
    distributions: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    """Of difficulty."""
    difficulties: tuple[tuple[int, int], ...] = ()
    """Lowest and highest, both included."""

    def takes(self, spec: TaskSpec) -> bool:
        return (
            (not self.splits or spec.split in self.splits)
            and (not self.distributions or spec.distribution in self.distributions)
            and (not self.sites or site_of(spec.website) in self.sites)
            and self._takes_difficulty(spec.difficulty)
        )

    def _takes_difficulty(self, difficulty: int) -> bool:
        if not self.classes and not self.difficulties:
            return True
        return difficulty_class(difficulty) in self.classes or any(low <= difficulty <= up for low, up in self.difficulties)


def selection_of(*, splits: str = "", sites: str = "", difficulties: str = "", distributions: str = "") -> Selection:
    """From words with commas between them. Raises `ConfigurationError`."""
    words = _words(difficulties)
    return Selection(
        splits=frozenset(_words(splits)),
        sites=frozenset(map(site_of, _words(sites))),
        distributions=frozenset(_words(distributions)),
        classes=frozenset(word for word in words if word in _CLASSES),
        difficulties=tuple(_range(word) for word in words if word not in _CLASSES),
    )


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _range(word: str) -> tuple[int, int]:
    low, dash, up = word.partition("-")
    up = up if dash else low
    if not (low.isdecimal() and up.isdecimal() and int(low) <= int(up)):
        raise ConfigurationError(
            f"--difficulty {word} is none of {', '.join(_CLASSES)}, no number and no range: write some such as easy,4-6"
        )
    return int(low), int(up)


class Sample:
    """`size` of all lines that come by, each as likely as another, in their order.

    Reservoir sampling, algorithm R: line n takes the place of a random one of `size` with the chance size / n (Vitter, Random
    sampling with a reservoir, ACM TOMS 11, 1985).
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._random = Random(seed)  # noqa: S311 - nothing secret is drawn
        self._number = 0
        self._taken: list[tuple[int, bytes]] = []

    def add(self, line: bytes) -> None:
        self._number += 1
        if len(self._taken) < self._size:
            self._taken.append((self._number, line))
        elif (place := self._random.randrange(self._number)) < self._size:
            self._taken[place] = (self._number, line)

    def lines(self) -> list[bytes]:
        return [line for _, line in sorted(self._taken)]
