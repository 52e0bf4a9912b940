"""How a file of weights comes about: fetched whole, or made of one that is there by differences, whichever is less to fetch.

What is announced says which differences there are; what is stored on WEIGHTS, which of them can be had.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from bus.ports import Bus
from bus.subjects import Subjects
from bus.weight_chunks import missing, stored
from schemas.messages import Checkpoint, FileHash, WeightDifference


class Route(NamedTuple):
    """Differences are applied to `begin`, the oldest first."""

    num_bytes: int
    """To fetch."""
    begin: FileHash
    is_here: bool
    """`begin` need not be fetched."""
    differences: tuple[WeightDifference, ...]


@dataclass
class Catalogue:
    """Files that were announced, by their hashes, and the differences that lead to them."""

    files: dict[str, FileHash] = field(default_factory=dict)
    differences: dict[str, WeightDifference] = field(default_factory=dict)

    @classmethod
    def of(cls, announced: Iterable[Checkpoint]) -> "Catalogue":
        """`announced`: oldest first."""
        catalogue = cls()
        for checkpoint in announced:
            for difference in checkpoint.differences:
                # What was there before is made of nothing newer: routes have an end.
                if difference.base_sha256 in catalogue.files and difference.sha256 not in catalogue.files:
                    catalogue.differences[difference.sha256] = difference
            catalogue.files.update((file.sha256, file) for file in checkpoint.policy_files)
        return catalogue

    def chain(self, sha256: str) -> list[WeightDifference]:
        """From a file back to one that no difference leads to."""
        found = list[WeightDifference]()
        while (difference := self.differences.get(sha256)) is not None:
            found.append(difference)
            sha256 = difference.base_sha256
        return found

    def needed(self, checkpoints: Iterable[Checkpoint]) -> set[str]:
        """Hashes of all that these versions' files can be made of."""
        needed = set[str]()
        for file in (file for checkpoint in checkpoints for file in checkpoint.policy_files):
            chain = self.chain(file.sha256)
            needed |= {file.sha256, *(each.base_sha256 for each in chain), *(each.file.sha256 for each in chain)}
        return needed


async def shortest_route(
    file: FileHash,
    catalogue: Catalogue,
    *,
    is_here: Callable[[FileHash], bool],
    is_stored: Callable[[FileHash], Awaitable[bool]],
) -> Route | None:
    """The one of the fewest bytes; None: there is none."""
    best: Route | None = None
    differences: tuple[WeightDifference, ...] = ()
    num_bytes = 0
    for difference in (*catalogue.chain(file.sha256), None):
        if is_here(file):
            here = Route(num_bytes, file, True, differences)
            return here if best is None else min(best, here, key=_num_bytes)
        if await is_stored(file):
            whole = Route(num_bytes + file.num_bytes, file, False, differences)
            best = whole if best is None else min(best, whole, key=_num_bytes)
        if difference is None or not await is_stored(difference.file):
            break
        num_bytes += difference.file.num_bytes
        differences = (difference, *differences)
        file = catalogue.files[difference.base_sha256]
    return best


def _num_bytes(route: Route) -> int:
    return route.num_bytes


def is_stored_on(bus: Bus, subjects: Subjects) -> Callable[[FileHash], Awaitable[bool]]:
    """Whether a file is whole on WEIGHTS."""

    async def is_stored(file: FileHash) -> bool:
        return not missing(file.num_bytes, await stored(bus, subjects, file.sha256))

    return is_stored
