"""Samples: one step each, with exactly the tokens that were sampled and exactly the screenshots that were seen.

Invariant: tokens are taken from the chain and never made again from text; screenshots are the browser's own bytes. A step that
cannot be trained on whole is left out with its reason, never cut.
"""

import enum
from dataclasses import dataclass

import numpy as np

from schemas.messages import RecordRef, StepRequest


class LeftOut(enum.Enum):
    """Why a step is not trained on."""

    UNPARSED = "unparsed"
    EARLIER = "earlier"
    """Not the episode's last, where that alone is trained on."""
    UNSAMPLED = "unsampled"
    """No log-probabilities of a sampler."""
    UNCHANGED = "unchanged"
    """The action did not change the screenshot."""
    UNLIKELY = "unlikely"
    """The policy sampled that answer with too small a probability."""
    TOO_LONG = "too_long"
    UNUSABLE = "unusable"
    """No completion tokens, or one that the sampler must not produce."""
    FAILED = "failed"
    """It met an error that nobody foresaw."""
    MISSING = "missing"
    """A record of the chain has aged out."""


Grid = tuple[int, int, int]
"""A screenshot's frames (or tiles), and the rows and columns of each, in patches."""


@dataclass(frozen=True, slots=True, eq=False)
class Patches:
    """One screenshot as the processor cuts it, before normalisation.

    Kept as bytes and without the repetition along time, this is a sixteenth of what the model is given.
    """

    raw: np.ndarray
    """uint8, (patches, channels * patch * patch), or of tiles (tiles, channels * tile * tile)."""
    grid: Grid


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One step, ready for training."""

    ref: RecordRef
    tokens: np.ndarray
    """int32, (length,): prompt, then completion."""
    num_prompt: int
    positions: np.ndarray
    """int32, (axes, length): the model's own, along one axis, or by time, row and column."""
    logprobs: np.ndarray
    """float32, (completion,): of the sampler; empty for demonstrations."""
    temperature: float
    screenshots: tuple[Patches, ...]
    versions: np.ndarray
    """int32, (completion,): the policy version that sampled each token; -1 where nobody says."""

    @property
    def num_completion(self) -> int:
        return len(self.tokens) - self.num_prompt

    def staleness(self, version: int) -> np.ndarray:
        """float32, (completion,): how many versions `version` is ahead of the one that sampled each token; 0 where nobody
        says, and where another run's trainer counted them."""
        known = (self.versions >= 0) & (self.versions <= version)
        return np.where(known, version - self.versions, 0).astype(np.float32)

    @property
    def num_bytes(self) -> int:
        arrays = (self.tokens, self.positions, self.logprobs, *(screenshot.raw for screenshot in self.screenshots))
        return sum(array.nbytes for array in arrays)


def token_versions(step: StepRequest) -> np.ndarray:
    """`Sample.versions` of a step."""
    found = np.full(len(step.completion_tokens), -1, dtype=np.int32)
    for span in step.versions:
        found[span.start : span.end] = span.version
    return found
