"""Task files and model for pages of suites: read as lists of elements, acted on by their numbers."""

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio
import anyio.to_thread

from agents.action_space import ActionSpace
from browser_workers.browser import View
from browser_workers.chromium.browser import PlaywrightBrowser
from browser_workers.suites import Suite, open_suites, resolve
from ops.quickstart.family_tasks import Task, family_tasks
from ops.quickstart.marks_phrases import WORDS, line_end_tokens, line_number_tokens, marks_phrases, token_forms
from ops.quickstart.page_seeds import PageSeeds
from ops.quickstart.reading_weights import Words, write_reading_weights
from ops.quickstart.recipe import Family
from ops.quickstart.tiny_model import SPECIAL_TOKENS, TinyShape, build_tiny_model
from ops.quickstart.word_tokenizer import word_tokenizer
from ops.run.folder import RunFolder
from ops.run.task_files import write_tasks
from schemas.config import Config

SHAPE = TinyShape(
    hidden_size=128,
    num_layers=3,
    vision_depth=1,
    feed_forward_size=256,
    num_heads=4,
    num_key_value_heads=4,
    rope_theta=1e6,
    max_screenshot_pixels=4096,
)
"""The picture is a few tokens: what stands on the page is read from the list of elements."""
_SLOTS = 4
_TEXT = (
    "(body => (body.querySelectorAll('script, style').forEach(each => each.remove()),"
    " body.innerHTML.replace(/<[^>]*>/g, ' ')))(document.body.cloneNode(true))"
)
"""An expression of JavaScript: what stands on a page, shown or not, with a space where a tag is."""
_SEEN_A_PAGE = 4
"""Demonstrated pages of each kind that the tokenizer takes words from."""


async def marks_material(
    browser: PlaywrightBrowser, config: Config, family: Family, seeds: PageSeeds, folder: RunFolder, seed: int
) -> None:
    """Writes tasks/*.jsonl and model/. Raises `UnknownWebsite` when the pages' package is not installed."""
    num_pages = len(family.pages)
    num_seen = family.num_demonstrations // num_pages
    demonstrations = await family_tasks(browser, family, family.pages, seeds.demonstrations, num_seen)
    train = await family_tasks(browser, family, family.pages, seeds.train, len(seeds.train) // num_pages)
    held_out = await family_tasks(browser, family, family.pages, seeds.held_out, family.num_held_out // num_pages)
    num_unseen = family.num_unseen // max(len(family.unseen_pages), 1)
    unseen = await family_tasks(browser, family, family.unseen_pages, seeds.held_out, num_unseen, first_id=len(held_out))
    write_tasks(folder.tasks / "demonstrations.jsonl", _mixed(demonstrations, num_seen))
    write_tasks(folder.tasks / "train.jsonl", train)
    write_tasks(folder.tasks / "held_out.jsonl", [*held_out, *unseen])
    looks = await _looks(browser, open_suites(), _mixed(demonstrations, num_seen)[: _SEEN_A_PAGE * num_pages])
    texts = [str(task["task_name"]) for task in (*demonstrations, *train)]
    texts += [
        " ".join((look.view.state.title, *(element.text for element in look.view.elements), look.text)) for look in looks
    ]
    phrases = [
        *marks_phrases(ActionSpace.of(config.context_config), config.model_config),
        *sorted({part for look in looks for part in _page_line(look.view)}),
    ]
    if family.signs:
        # A map is read cell by cell, and what is asked for is the same of every one.
        phrases += [*family.signs, *sorted({str(task["task_name"]) for task in demonstrations})]
    tokenizer = word_tokenizer(texts, words=WORDS, phrases=phrases, special_tokens=SPECIAL_TOKENS)
    words = Words(forms=token_forms(tokenizer), numbers=line_number_tokens(tokenizer), ends=line_end_tokens(tokenizer))
    await anyio.to_thread.run_sync(
        lambda: build_tiny_model(
            folder.model,
            tokenizer,
            seed=seed,
            shape=SHAPE,
            write_weights=lambda model: write_reading_weights(model, words, seed=seed, above=_above(family)),
        )
    )


def _above(family: Family) -> int:
    """How many tokens before a cell of its maps the one above it stands: a row is its cells and its end."""
    return int(family.pages[0].partition("x")[0]) + 1 if family.signs else 0


def _page_line(view: View) -> Sequence[str]:
    """The line of a prompt that names the page: up to its seed, and what stands behind that, if anything does."""
    before, _, behind = view.state.url.partition("seed=")
    rest = behind.lstrip(string.digits)
    return (f"Page: {view.state.title} ({before}seed=", *filter(None, (rest,)))


def _mixed(tasks: Sequence[Task], num_each: int) -> list[Task]:
    """One of every page, then the next of every page, so that any beginning holds all pages."""
    return [task for first in range(num_each) for task in tasks[first::num_each]]


@dataclass(frozen=True)
class _Look:
    """What the first observation of a task shows."""

    view: View
    text: str
    """All of the page's, also what is shown later or cannot be acted on."""


async def _looks(browser: PlaywrightBrowser, suites: Mapping[str, Suite], tasks: Sequence[Task]) -> list[_Look]:
    looks: dict[int, _Look] = {}
    waiting = iter(enumerate(tasks))

    async def look() -> None:
        for index, task in waiting:
            async with browser.session(resolve(str(task["website"]), suites)) as session:
                await session.open()
                (text,) = await session.page_values((_TEXT,))
                looks[index] = _Look(await session.view(), text)

    async with anyio.create_task_group() as group:
        for _ in range(_SLOTS):
            group.start_soon(look)
    return [looks[index] for index in range(len(tasks))]
