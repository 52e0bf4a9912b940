"""Which versions get an evaluation round, and how far each round has come. Pure: what was admitted and judged comes in."""

from collections.abc import Callable, Collection, Sequence

from schemas.ids import EpisodeId, PolicyVersion

NumUnfinished = Callable[[Collection[EpisodeId]], int]
"""How many of these episodes have no judgement yet."""


class EvaluationRounds:
    """A round is begun once, and complete once every episode of it is judged."""

    def __init__(self, versions: Sequence[PolicyVersion], *, waits: bool = True) -> None:
        """`waits`: a version's round begins when policies serve that version, or a newer one; else at once."""
        self._versions = tuple(versions)
        self._waits = waits
        self._begun: dict[PolicyVersion, frozenset[EpisodeId]] = {}
        self._complete: set[PolicyVersion] = set()

    def due(self, served: int | None) -> list[PolicyVersion]:
        """Rounds to begin now. `served`: the oldest version that a policy serves; None: no policy is there."""
        return [
            version
            for version in self._versions
            if version not in self._begun and (not self._waits or (served is not None and served >= version))
        ]

    def begin(self, version: PolicyVersion, episodes: Collection[EpisodeId]) -> None:
        self._begun[version] = frozenset(episodes)

    def complete(self, num_unfinished: NumUnfinished) -> dict[PolicyVersion, frozenset[EpisodeId]]:
        """The rounds that are complete and were not at the last call, with their episodes."""
        ended = {
            version: episodes
            for version, episodes in self._begun.items()
            if version not in self._complete and num_unfinished(episodes) == 0
        }
        self._complete.update(ended)
        return ended

    def is_complete(self, version: PolicyVersion) -> bool:
        return version in self._complete

    @property
    def all_complete(self) -> bool:
        return self._complete.issuperset(self._versions)
