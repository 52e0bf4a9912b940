"""Task files and model for the quickstart's own pages of buttons: seen as pixels, clicked by coordinates."""

import random
from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread

from agents.prompts import system_prompt
from agents.rendering import render_action
from browser_workers.browser import Browser
from ops.quickstart.family_tasks import family_tasks
from ops.quickstart.page_seeds import PageSeeds
from ops.quickstart.recipe import GRID, THOUGHT, Family
from ops.quickstart.tiny_model import build_tiny_model, sentence_tokenizer
from ops.run.folder import RunFolder
from ops.run.task_files import write_tasks
from schemas.config import Config
from schemas.messages import Action, ActionKind
from schemas.model_config import ModelConfig

_NUM_ANSWERS = 400
"""Example answers that the tokenizer is trained on."""


async def button_material(
    browser: Browser, config: Config, family: Family, seeds: PageSeeds, folder: RunFolder, seed: int
) -> None:
    """Writes tasks/*.jsonl and model/."""
    texts = reading_matter(await _write_task_files(browser, family, seeds, folder.tasks), config.model_config)
    await anyio.to_thread.run_sync(lambda: build_tiny_model(folder.model, sentence_tokenizer(texts), seed=seed))


async def _write_task_files(browser: Browser, family: Family, seeds: PageSeeds, folder: Path) -> list[str]:
    """Writes demonstrations.jsonl, train.jsonl and held_out.jsonl; returns the different instructions in them."""
    instructions: set[str] = set()
    for name, pages in (("demonstrations", seeds.demonstrations), ("train", seeds.train), ("held_out", seeds.held_out)):
        tasks = await family_tasks(browser, family, family.pages, pages, len(pages))
        instructions.update(str(task["task_name"]) for task in tasks)
        write_tasks(folder / f"{name}.jsonl", tasks)
    return sorted(instructions)


def reading_matter(instructions: Sequence[str], model: ModelConfig) -> list[str]:
    """What the tiny tokenizer is trained on: the prompt as the model reads it, and answers as it is to write them."""
    rng = random.Random(0)  # noqa: S311 - example numbers, not a secret
    points = [(rng.randrange(0, 1001), rng.randrange(0, 1001)) for _ in range(_NUM_ANSWERS)]
    answers = [
        render_action(Action(kind=ActionKind.CLICK, point=point), thought=THOUGHT, model=model, grid=GRID) for point in points
    ]
    tasks = [f"Task: {instruction}\n" for instruction in instructions]
    return [system_prompt(model.prompt_version, text=model.prompt_text), *tasks, *answers]
