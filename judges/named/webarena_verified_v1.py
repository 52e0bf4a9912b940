"""WebArena-Verified's evaluators: the answer's JSON, and the traffic of the episode's pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from judges.judge import Judge
from judges.named import JudgeOpening, opened_judge
from judges.webarena.examiner import open_examiner
from judges.webarena.judge import WebArenaVerifiedJudge

NAME = "webarena_verified_v1"


@opened_judge(NAME)
@asynccontextmanager
async def webarena_verified_v1(opening: JudgeOpening) -> AsyncIterator[Judge]:
    async with open_examiner(opening.config.webarena_python) as examiner:
        yield WebArenaVerifiedJudge(NAME, examiner)
