"""The judge for which an answer is right when it resembles the reference."""

from judges.named import judge
from judges.programmatic.answer import AnswerJudge
from schemas.extras import require_extra
from schemas.messages import CheckMatch


@judge("answer_fuzzy_v1")
class AnswerFuzzy(AnswerJudge):
    match = CheckMatch.FUZZY

    def __init__(self) -> None:
        """Raises `ConfigurationError` where rapidfuzz is not installed."""
        require_extra("rapidfuzz", "judge")
