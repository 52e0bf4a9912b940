"""The quickstart's material: three task files whose pages never coincide, and the untrained model that reads them.

Made by a process of its own, `python -m ops.quickstart.material`, so that the terminal's process needs neither torch
nor a browser.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from agents.prompts import system_prompt
from agents.rendering import render_action
from browser_workers.browser import Browser
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.suites.demo import demo_tasks
from ops.processes.interruptible import run
from ops.quickstart.recipe import GRID, NUM_DEMONSTRATIONS, NUM_HELD_OUT, THOUGHT
from ops.quickstart.tiny_model import build_tiny_model
from ops.run.folder import RunFolder
from ops.run.task_files import write_tasks
from schemas.errors import ConfigurationError
from schemas.messages import Action, ActionKind

_SEEDS_A_RUN = 1_000_000
_DEMONSTRATIONS_AT, _TRAIN_AT, _HELD_OUT_AT = 0, 100_000, 900_000
_NUM_ANSWERS = 400
"""Example answers that the tokenizer is trained on."""


@dataclass(frozen=True, kw_only=True)
class PageSeeds:
    """Seeds of the pages of one run; pages of different seeds differ, and no seed is in two of these."""

    demonstrations: range
    train: range
    held_out: range

    @classmethod
    def of_run(cls, seed: int, *, num_demonstrations: int, num_train: int, num_held_out: int) -> "PageSeeds":
        """Raises `ConfigurationError` when more pages are asked for than a run has."""
        if num_train > _HELD_OUT_AT - _TRAIN_AT or num_demonstrations > _TRAIN_AT:
            raise ConfigurationError(f"{num_train} training pages are more than a run has: at most {_HELD_OUT_AT - _TRAIN_AT}")
        first = seed * _SEEDS_A_RUN
        return cls(
            demonstrations=range(first + _DEMONSTRATIONS_AT, first + _DEMONSTRATIONS_AT + num_demonstrations),
            train=range(first + _TRAIN_AT, first + _TRAIN_AT + num_train),
            held_out=range(first + _HELD_OUT_AT, first + _HELD_OUT_AT + num_held_out),
        )


async def write_task_files(browser: Browser, family: str, seeds: PageSeeds, folder: Path) -> list[str]:
    """Writes demonstrations.jsonl, train.jsonl and held_out.jsonl; returns the different instructions in them."""
    instructions: set[str] = set()
    for name, pages in (("demonstrations", seeds.demonstrations), ("train", seeds.train), ("held_out", seeds.held_out)):
        tasks = await demo_tasks(browser, family, pages)
        instructions.update(str(task["task_name"]) for task in tasks)
        write_tasks(folder / f"{name}.jsonl", tasks)
    return sorted(instructions)


def reading_matter(instructions: Sequence[str]) -> list[str]:
    """What the tiny tokenizer is trained on: the prompt as the model reads it, and answers as it is to write them."""
    rng = random.Random(0)  # noqa: S311 - example numbers, not a secret
    points = [(rng.randrange(0, 1001), rng.randrange(0, 1001)) for _ in range(_NUM_ANSWERS)]
    answers = [render_action(Action(kind=ActionKind.CLICK, point=point), thought=THOUGHT, grid=GRID) for point in points]
    tasks = [f"Task: {instruction}\n" for instruction in instructions]
    return [system_prompt("vanilla"), *tasks, *answers]


async def make_material(folder: RunFolder, family: str, seed: int) -> None:
    """Writes tasks/*.jsonl and model/."""
    config = folder.load()
    seeds = PageSeeds.of_run(
        seed,
        num_demonstrations=NUM_DEMONSTRATIONS,
        num_train=config.feeder_config.num_iterations * config.env_config.train_tasks_rollout_size,
        num_held_out=NUM_HELD_OUT,
    )
    async with PlaywrightBrowser(config.browser_config, config.env_config) as browser:
        instructions = await write_task_files(browser, family, seeds, folder.tasks)
    texts = reading_matter(instructions)
    await anyio.to_thread.run_sync(lambda: build_tiny_model(folder.model, texts, seed=seed))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--family", required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()

    async def body() -> int:
        await make_material(RunFolder(options.run_dir), options.family, options.seed)
        return 0

    return run(body)


if __name__ == "__main__":
    sys.exit(main())
