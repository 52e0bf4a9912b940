"""A calibration's figures as plain values, which become JSON."""

from dataclasses import asdict, dataclass
from typing import Any

from judges.spending import Spending
from ops.analysis.calibration.comparison import UNJUDGED, UNLABELLED, Comparison
from ops.statistics.shares import share_json
from schemas.ids import EpisodeId


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """One judge against one truth, in one source."""

    source: str
    rubric: str
    truth: str
    """Name of the file of labels, or the other rubric."""
    comparison: Comparison
    other_spending: Spending | None
    """Of the other rubric; None: people labelled."""
    unknown: tuple[EpisodeId, ...]
    """Labelled episodes that the source does not hold."""

    def as_json(self) -> dict[str, Any]:
        found = self.comparison
        confusion = found.confusion
        return {
            "source": self.source,
            "rubric": self.rubric,
            "truth": self.truth,
            "num_episodes": sum(found.truths.values()),
            "num_compared": confusion.number,
            "num_unlabelled": found.truths.get(UNLABELLED, 0),
            "num_unjudged": found.verdicts.get(UNJUDGED, 0),
            "truths": found.truths,
            "verdicts": found.verdicts,
            "matrix": found.matrix,
            "confusion": asdict(confusion),
            "precision": share_json(confusion.precision),
            "recall": share_json(confusion.recall),
            "agreement": share_json(confusion.agreement),
            "f1": confusion.f1,
            "kappa": confusion.kappa,
            "by_difficulty": {str(level): share_json(share) for level, share in found.by_difficulty.items()},
            "vote_agreement": found.vote_agreement,
            "spending": spending_json(found.spending),
            "other_spending": spending_json(self.other_spending) if self.other_spending else None,
            "unknown": list(self.unknown),
            "disagreements": [asdict(one) for one in found.disagreements],
        }


def spending_json(spending: Spending) -> dict[str, Any]:
    return {
        **asdict(spending),
        "cached_share": spending.cached_share,
        "cost_each": spending.cost_each,
        "seconds_each": spending.seconds_each,
    }
