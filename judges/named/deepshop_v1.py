"""DeepShop's evaluator: product attributes, filters and sorting, all of which have to hold."""

from contextlib import AbstractAsyncContextManager

from judges.judge import Judge
from judges.named import JudgeOpening, opened_judge
from schemas.extras import require_extra

NAME = "deepshop_v1"


@opened_judge(NAME, asks_models=True)
def deepshop_v1(opening: JudgeOpening) -> AbstractAsyncContextManager[Judge]:
    require_extra("openai", "judge")
    from judges.published.deepshop import DEEPSHOP
    from judges.published.opening import open_published

    return open_published(NAME, DEEPSHOP, opening)
