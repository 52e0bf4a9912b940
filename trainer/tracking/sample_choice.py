"""Chooses the episodes of a batch that are shown. Pure: the same batch gives the same choice."""

import hashlib
from collections.abc import Sequence

from schemas.messages import Judgement
from trainer.scores import is_success, score


def chosen_episodes(batch: Sequence[Judgement], count: int) -> list[Judgement]:
    """Up to `count`: half successes and half failures as far as there are, the rest from what there is more of.

    Drawn by a digest of the episodes' names, so that no task comes first every time; successes stand first.
    """
    drawn = sorted((judgement for judgement in batch if judgement.trajectory.num_steps), key=_digest)
    successes = [judgement for judgement in drawn if is_success(judgement)]
    failures = [judgement for judgement in drawn if not is_success(judgement)]
    # What nobody scored is shown only where nothing else is left.
    failures.sort(key=lambda judgement: score(judgement) is None)
    num_failures = min(len(failures), max(count // 2, count - len(successes)))
    return successes[: count - num_failures] + failures[:num_failures]


def _digest(judgement: Judgement) -> bytes:
    return hashlib.sha256(judgement.episode.encode()).digest()
