"""The judge for which an answer is right when its first number is the reference's."""

from judges.named import judge
from judges.programmatic.answer import AnswerJudge
from schemas.messages import CheckMatch


@judge("answer_numeric_v1")
class AnswerNumeric(AnswerJudge):
    match = CheckMatch.NUMBER
