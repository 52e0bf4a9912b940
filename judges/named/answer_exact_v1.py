"""The judge for which an answer is right when it equals the reference, but for case and white space."""

from judges.named import judge
from judges.programmatic.answer import AnswerJudge
from schemas.messages import CheckMatch


@judge("answer_exact_v1")
class AnswerExact(AnswerJudge):
    match = CheckMatch.EQUALS
