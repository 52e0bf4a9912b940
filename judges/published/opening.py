"""Opens a published evaluator with its prompts and everything that asking takes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path

from judges.judge import Judge
from judges.named import JudgeOpening
from judges.prompt_files import Placeholders, Prompts, read_prompts
from judges.published import prompts as committed
from judges.published.judge import Evaluator, PublishedJudge
from judges.rubric.opening import open_sessions

_FOLDER = "judges/published/prompts"


@asynccontextmanager
async def open_published(name: str, evaluator: Evaluator, opening: JudgeOpening) -> AsyncIterator[Judge]:
    """Raises `ConfigurationError` where a prompt, an address, a key or a price is missing."""
    prompts = prompts_of(name, evaluator.placeholders, opening.config.prompts)
    async with open_sessions(opening) as sessions:
        yield PublishedJudge(name, evaluator, sessions, prompts, opening.config)


def prompts_of(name: str, placeholders: Placeholders, folder: str = "") -> Prompts:
    """Those of a folder, else those that are part of this package. Raises `ConfigurationError`."""
    given = Path(folder).resolve() if folder else resources.files(committed).joinpath(name)
    return read_prompts(given, placeholders, example=f"{_FOLDER}/{name}")
