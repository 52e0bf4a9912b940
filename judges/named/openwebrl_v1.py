"""OpenWebRL's judge: one question about actions with feedback, the answer and the last 3 screenshots."""

from contextlib import AbstractAsyncContextManager

from judges.judge import Judge
from judges.named import JudgeOpening, opened_judge
from schemas.extras import require_extra

NAME = "openwebrl_v1"


@opened_judge(NAME, asks_models=True)
def openwebrl_v1(opening: JudgeOpening) -> AbstractAsyncContextManager[Judge]:
    require_extra("openai", "judge")
    from judges.published.opening import open_published
    from judges.published.openwebrl import OPENWEBRL

    return open_published(NAME, OPENWEBRL, opening)
