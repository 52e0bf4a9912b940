"""The judge that asks models about screenshots: which are evidence, whether the site blocked, whether all facts are shown."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from judges.judge import Judge
from judges.named import JudgeOpening, opened_judge
from schemas.extras import require_extra

NAME = "rubric_v1"


@opened_judge(NAME, asks_models=True)
@asynccontextmanager
async def rubric_v1(opening: JudgeOpening) -> AsyncIterator[Judge]:
    require_extra("openai", "judge")
    from judges.rubric.judge import RubricJudge
    from judges.rubric.opening import open_sessions
    from judges.rubric.prompts import committed_prompts, load_prompts

    config = opening.config
    prompts = load_prompts(Path(config.prompts)) if config.prompts else committed_prompts(NAME)
    async with open_sessions(opening) as sessions:
        yield RubricJudge(sessions, prompts, config)
