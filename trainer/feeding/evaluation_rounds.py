"""Tracks the evaluation rounds: which versions get one, and how far each has come. Pure: what was admitted and judged
comes in."""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from schemas.ids import EpisodeId, PolicyVersion
from schemas.messages import EvaluationRound
from trainer.scores import Score


class EvaluationRounds:
    """Rounds are begun in the order of their versions, each once; one is complete once every episode of it is judged."""

    def __init__(
        self,
        versions: Sequence[PolicyVersion] = (),
        *,
        waits: bool = True,
        through: int = -1,
        open_rounds: Sequence[EvaluationRound] = (),
    ) -> None:
        """
        Args:
            waits: a version's round begins when policies serve that version, or a newer one; else at once.
            through: the version up to which all rounds were begun before, and are complete but for `open_rounds`.
        """
        self._versions = tuple(versions)
        self._waits = waits
        self.through = through
        self._open = {each.version: each for each in open_rounds}
        self._missing = {each.version: set(each.missing) for each in open_rounds}

    def due(self, served: int | None) -> list[PolicyVersion]:
        """Rounds to begin now. `served`: the oldest version that a policy serves; None: no policy is there."""
        return [
            version
            for version in self._versions
            if version > self.through and (not self._waits or (served is not None and served >= version))
        ]

    def begin(self, version: PolicyVersion, num_episodes: int) -> None:
        self.through = version
        self._open[version] = EvaluationRound(version=version, num_episodes=num_episodes)
        self._missing[version] = set()

    def to_admit(self) -> list[EvaluationRound]:
        """The rounds of which episodes are still to be admitted."""
        return [each for each in self._open.values() if each.num_admitted < each.num_episodes]

    def admit(self, version: PolicyVersion, episodes: Collection[EpisodeId]) -> None:
        """These are the next of the round."""
        self._open[version] = replace(self._open[version], num_admitted=self._open[version].num_admitted + len(episodes))
        self._missing[version].update(episodes)

    def judged(self, episode: EpisodeId, scored: Score | None) -> None:
        """Counts an episode of a round once; None: it has no verdict, and never will."""
        for version, missing in self._missing.items():
            if episode in missing:
                missing.remove(episode)
                if scored is not None:
                    self._open[version] = _with(self._open[version], scored)

    def complete(self) -> list[EvaluationRound]:
        """The rounds that have become complete since the last call."""
        ended = [
            each for each in self._open.values() if each.num_admitted == each.num_episodes and not self._missing[each.version]
        ]
        for each in ended:
            del self._open[each.version], self._missing[each.version]
        return ended

    def is_complete(self, version: PolicyVersion) -> bool:
        return version <= self.through and version not in self._open

    @property
    def all_complete(self) -> bool:
        return all(map(self.is_complete, self._versions))

    @property
    def missing(self) -> set[EpisodeId]:
        """Episodes that were admitted and not judged."""
        return set().union(*self._missing.values())

    def memory(self) -> tuple[EvaluationRound, ...]:
        return tuple(replace(each, missing=tuple(sorted(self._missing[version]))) for version, each in self._open.items())


def _with(before: EvaluationRound, scored: Score) -> EvaluationRound:
    return replace(
        before,
        num_scored=before.num_scored + 1,
        num_successes=before.num_successes + scored.success,
        total_reward=before.total_reward + scored.reward,
    )
