"""The Universal Verifier: a rubric scored by criterion, and beside it the outcome, which decides."""

from contextlib import AbstractAsyncContextManager

from judges.judge import Judge
from judges.named import JudgeOpening, opened_judge
from schemas.extras import require_extra

NAME = "universal_verifier_v1"


@opened_judge(NAME, asks_models=True)
def universal_verifier_v1(opening: JudgeOpening) -> AbstractAsyncContextManager[Judge]:
    require_extra("openai", "judge")
    from judges.published.opening import open_published
    from judges.published.universal_verifier import UNIVERSAL_VERIFIER

    return open_published(NAME, UNIVERSAL_VERIFIER, opening)
