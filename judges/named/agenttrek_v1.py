"""AgentTrek's evaluator: one question about thoughts, actions and the last screenshot."""

from contextlib import AbstractAsyncContextManager

from judges.judge import Judge
from judges.named import JudgeOpening, opened_judge
from schemas.extras import require_extra

NAME = "agenttrek_v1"


@opened_judge(NAME, asks_models=True)
def agenttrek_v1(opening: JudgeOpening) -> AbstractAsyncContextManager[Judge]:
    require_extra("openai", "judge")
    from judges.published.agenttrek import AGENTTREK
    from judges.published.opening import open_published

    return open_published(NAME, AGENTTREK, opening)
