"""WebVoyager's evaluator: one question about the answer and the last 15 screenshots."""

from contextlib import AbstractAsyncContextManager

from judges.judge import Judge
from judges.named import JudgeOpening, opened_judge
from schemas.extras import require_extra

NAME = "webvoyager_v1"


@opened_judge(NAME, asks_models=True)
def webvoyager_v1(opening: JudgeOpening) -> AbstractAsyncContextManager[Judge]:
    require_extra("openai", "judge")
    from judges.published.opening import open_published
    from judges.published.webvoyager import WEBVOYAGER

    return open_published(NAME, WEBVOYAGER, opening)
