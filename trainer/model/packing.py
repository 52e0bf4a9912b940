"""Packed sequences: they stand behind each other in one long tensor, of which no row is padding."""

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import torch


@dataclass(frozen=True)
class Packing:
    """How many rows belong to each sequence."""

    lengths: tuple[int, ...]

    @cached_property
    def longest(self) -> int:
        return max(self.lengths)

    @cached_property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """(sequences, length) of neighbours of equal length.

        Example: lengths (4, 4, 7) are ((2, 4), (1, 7)).
        """
        return tuple((len(list(run)), length) for length, run in groupby(self.lengths))

    def ends(self, device: torch.device) -> torch.Tensor:
        """int32, (sequences + 1,): zero, then where each sequence ends."""
        known = self._ends.get(device)
        if known is None:
            known = self._ends[device] = torch.tensor([0, *self.lengths]).cumsum(0, dtype=torch.int32).to(device)
        return known

    @cached_property
    def _ends(self) -> dict[torch.device, torch.Tensor]:
        return {}
