"""WebJudge of Online-Mind2Web: key points, screenshots that matter to them, the outcome."""

from contextlib import AbstractAsyncContextManager

from judges.judge import Judge
from judges.named import JudgeOpening, opened_judge
from schemas.extras import require_extra

NAME = "webjudge_v1"


@opened_judge(NAME, asks_models=True)
def webjudge_v1(opening: JudgeOpening) -> AbstractAsyncContextManager[Judge]:
    require_extra("openai", "judge")
    from judges.published.opening import open_published
    from judges.published.webjudge import WEBJUDGE

    return open_published(NAME, WEBJUDGE, opening)
