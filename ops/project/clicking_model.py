"""Makes the model of a new project: a tiny Qwen3-VL that can do one thing from the start, click on one of the first elements.

Every answer that it knows is one token, and its first weights make all of them about equally likely, and anything else
unlikely. Which of them a task wants, it learns from reward. It cannot read: what it learns of a task, it learns by heart.

Made by a process of its own, `python -m ops.project.clicking_model PROJECT`, so that the command needs no torch.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import Qwen3VLForConditionalGeneration

from agents.action_space import ActionSpace
from agents.rendering import render_action
from ops.config.loading import load_config
from ops.config.overrides import as_overrides
from ops.quickstart.marks_phrases import WORDS, marks_phrases, token_id
from ops.quickstart.tiny_model import END_OF_TURN, SPECIAL_TOKENS, TinyShape, build_tiny_model
from ops.quickstart.word_tokenizer import word_tokenizer
from ops.run.tasks import tasks_of
from schemas.config import Config
from schemas.messages import Action, ActionKind

NUM_ELEMENTS = 6
"""That it can click on."""
_SHAPE = TinyShape(max_screenshot_pixels=4096)
_SEED = 0
_WRITTEN, _READ = 5.0, 2.5
"""Lengths, along one direction, of what a token puts into a hidden state and of what an output reads there."""
_TAG = re.compile("<[^>]*>")


def build_clicking_model(folder: Path, config: Config, *, tasks: Sequence[str], pages: Sequence[str]) -> None:
    """Writes a model folder.

    Args:
        tasks: instructions, each of which becomes one token, so that it is easily told from the others.
        pages: texts whose words become tokens.
    """
    answers = [_answer(number, config) for number in range(1, NUM_ELEMENTS + 1)]
    phrases = [*marks_phrases(ActionSpace.of(config.context_config), config.model_config), *tasks, *answers]
    tokenizer = word_tokenizer(pages, words=WORDS, phrases=phrases, special_tokens=SPECIAL_TOKENS, min_texts=1)
    known = [token_id(tokenizer, answer) for answer in answers]
    begins, ends = token_id(tokenizer, "assistant\n"), token_id(tokenizer, END_OF_TURN)
    build_tiny_model(
        folder,
        tokenizer,
        seed=_SEED,
        shape=_SHAPE,
        write_weights=lambda model: _expect(model, begins=begins, answers=known, ends=ends),
    )


def _answer(number: int, config: Config) -> str:
    space = ActionSpace.of(config.context_config)
    click = Action(kind=ActionKind.CLICK, element=number)
    return render_action(click, thought=f"Click on element {number}.", model=config.model_config, space=space)


def _expect(model: Qwen3VLForConditionalGeneration, *, begins: int, answers: Sequence[int], ends: int) -> None:
    """Has an answer follow the beginning of a turn, and the end of the turn follow an answer."""
    embeddings, head = model.model.language_model.embed_tokens.weight, model.lm_head.weight
    rng = torch.Generator().manual_seed(_SEED)
    directions, _ = torch.linalg.qr(torch.randn(embeddings.shape[1], 2, generator=rng))
    answering, ending = directions.T
    with torch.no_grad():
        embeddings[begins] += _WRITTEN * answering
        embeddings[list(answers)] += _WRITTEN * ending
        head[list(answers)] += _READ * answering
        head[ends] += _READ * ending


def main(project: Path) -> None:
    config = load_config(project / "config.yaml", as_overrides({"data_path": str(project)}))
    tasks = [task.instruction for task in tasks_of(config, config.env_config.train_tasks)]
    pages = [_TAG.sub(" ", page.read_text()) for page in sorted((project / "site").glob("*.html"))]
    build_clicking_model(project / config.policy_config.base_model, config, tasks=tasks, pages=pages)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
