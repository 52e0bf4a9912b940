"""Seeds of the pages of one run, so that no page is in two phases."""

from dataclasses import dataclass

from schemas.errors import ConfigurationError

_SEEDS_A_RUN = 1_000_000
_DEMONSTRATIONS_AT, _TRAIN_AT, _HELD_OUT_AT = 0, 100_000, 900_000


@dataclass(frozen=True, kw_only=True)
class PageSeeds:
    """Pages of different seeds differ, and no seed is in two of these."""

    demonstrations: range
    train: range
    held_out: range

    @classmethod
    def of_run(cls, seed: int, *, num_demonstrations: int, num_train: int, num_held_out: int) -> "PageSeeds":
        """Raises `ConfigurationError` when more pages are asked for than a run has."""
        if num_train > _HELD_OUT_AT - _TRAIN_AT or num_demonstrations > _TRAIN_AT:
            raise ConfigurationError(f"{num_train} training pages are more than a run has: at most {_HELD_OUT_AT - _TRAIN_AT}")
        first = seed * _SEEDS_A_RUN
        return cls(
            demonstrations=range(first + _DEMONSTRATIONS_AT, first + _DEMONSTRATIONS_AT + num_demonstrations),
            train=range(first + _TRAIN_AT, first + _TRAIN_AT + num_train),
            held_out=range(first + _HELD_OUT_AT, first + _HELD_OUT_AT + num_held_out),
        )
