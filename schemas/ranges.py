"""Ranges of what stands in messages: the decoder refuses a number or name that no worker can mean.

A bound is generous to every honest writer, and small enough that no reader ends, waits or fills its memory over it.
"""

from typing import Annotated

from msgspec import Meta

from schemas.ids import EpisodeId, GroupId, PolicyVersion, WorkerId

MAX_STEPS = 10_000
"""Of one episode."""
LARGEST = 2**53 - 1
"""The largest whole number that every language reads as it was written."""
_FLOAT32 = 3.4e38
_YEAR_9999 = 253_402_300_799.0
_NAME = r"^[A-Za-z0-9_-]{1,128}$(?!\n)"
_NAME_OR_NONE = r"^[A-Za-z0-9_-]{0,128}$(?!\n)"

Count = Annotated[int, Meta(ge=0, le=LARGEST)]
"""Also sequences and bytes."""
Whole = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)]
Share = Annotated[float, Meta(ge=0, le=1)]
Attempt = Annotated[int, Meta(ge=0, le=1_000_000)]
"""0: nobody has taken the episode."""
Step = Annotated[int, Meta(ge=0, lt=MAX_STEPS)]
StepCount = Annotated[int, Meta(ge=0, le=MAX_STEPS + 1)]
"""Of steps, or of observations: one more."""
TokenId = Annotated[int, Meta(ge=0, lt=2**31)]
Logprob = Annotated[float, Meta(ge=-_FLOAT32, le=0.001)]
"""Rounding takes a sure token's a little above 0."""
Real = Annotated[float, Meta(ge=-_FLOAT32, le=_FLOAT32)]
"""Neither infinite nor NaN, also where a model computes with it."""


def is_real(value: float) -> bool:
    """Whether a number can stand where `Real` is asked for."""
    return abs(value) <= _FLOAT32


LEAST_TEMPERATURE = 0.01
"""Above 0: vLLM samples with no lower one, and logits that are divided by far less are infinite."""


Amount = Annotated[float, Meta(ge=0, le=_FLOAT32)]
"""Seconds, costs."""
Moment = Annotated[float, Meta(ge=0, le=_YEAR_9999)]
"""Unix seconds of a date that every calendar has."""
Coordinate = Annotated[float, Meta(ge=0, le=1000)]
"""On the 0-1000 grid."""
Pixels = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
Version = Annotated[PolicyVersion, Meta(ge=0, lt=2**31)]
Episode = Annotated[EpisodeId, Meta(pattern=_NAME)]
Group = Annotated[GroupId, Meta(pattern=_NAME)]
Worker = Annotated[WorkerId, Meta(pattern=_NAME_OR_NONE)]
Token = Annotated[str, Meta(pattern=_NAME)]
"""One token of a subject."""
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
