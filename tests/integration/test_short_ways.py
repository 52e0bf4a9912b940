"""What docs/architecture.md says of the way to a click is what the interpreter sees."""

import re
import traceback
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.async_api import Mouse

from browser_workers.suites.demo import DemoSuite
from schemas.messages import Action, ActionKind
from tests import builders
from tests.support.browsers.page_plays import play, playing

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
ROOT = Path(__file__).parents[2]
CLICK = Action(kind=ActionKind.CLICK, point=(500.0, 500.0))


async def test_a_slot_clicks_by_the_calls_that_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    click, ways = Mouse.click, list[list[tuple[str, str]]]()

    async def clicked(self: Mouse, *args: Any, **named: Any) -> None:
        found = [(Path(frame.filename), frame.name) for frame in traceback.extract_stack()]
        ways.append(
            [(str(file.relative_to(ROOT)), name) for file, name in found if file.is_relative_to(ROOT / "browser_workers")]
        )
        await click(self, *args, **named)

    monkeypatch.setattr(Mouse, "click", clicked)
    task = msgspec.structs.replace(builders.task(), website="demo:click_button?seed=1", max_steps=1)
    async with playing(tmp_path, lambda _: CLICK, {"demo": DemoSuite()}, num_slots=1) as bus:
        await play(bus, [task])
    page = (ROOT / "docs" / "architecture.md").read_text().partition("there are 18 calls:")[2].partition("```\n")[2]
    drawn = re.findall(r"(browser_workers/[\w/]+\.py) (\w+)", page.partition("```")[0])
    assert ways[0] == [call for call in drawn if call != ("browser_workers/worker.py", "run")]
