"""The suite of examples/ is played by a real browser worker, as the configuration names it."""

from pathlib import Path

import msgspec
import pytest

from browser_workers.suites import UnknownWebsite, open_suites, resolve
from ops.config.loading import load_config
from schemas.errors import ConfigurationError
from schemas.messages import Action, ActionKind, Observation, Task, Verdict
from tests import builders
from tests.support.browsers.page_plays import judged, playing

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
EXAMPLE = Path(__file__).parents[2] / "examples" / "own_suite.py"
OWN = load_config("default", [f"browser_config.suites=['{EXAMPLE}:doors']"]).browser_config.suites
LEFT_DOOR = Action(kind=ActionKind.CLICK, point=(100, 70))


def door(key: str) -> Task:
    return msgspec.structs.replace(builders.task(f"door-{key}"), website=f"doors:two?key={key}", max_steps=2)


async def test_a_suite_of_ones_own_is_played_and_rewarded(tmp_path: Path) -> None:
    def go_left(observation: Observation) -> Action:
        assert observation.title == "Doors"
        return LEFT_DOOR

    async with playing(tmp_path, go_left, open_suites(OWN)) as bus:
        found = await judged(bus, [door("left"), door("right")])
    verdicts = {judgement.trajectory.task.website: judgement.verdict for judgement in found}
    assert verdicts == {"doors:two?key=left": Verdict.SUCCESS, "doors:two?key=right": Verdict.FAILURE}
    assert {judgement.trajectory.num_steps for judgement in found} == {1}, "the page says when it is done"


def test_it_stands_beside_the_others_and_refuses_what_it_does_not_have() -> None:
    suites = open_suites(OWN)
    assert sorted(suites) == ["demo", "doors", "frozen_lake", "miniwob", "shop", "sokoban"]
    with pytest.raises(UnknownWebsite, match=r"doors:two\?key=up: write doors:two\?key=left"):
        resolve("doors:two?key=up", suites)
    known = "demo:, frozen_lake:, miniwob:, shop:, sokoban:"
    with pytest.raises(UnknownWebsite, match=rf"write a http.* address, or a page of a suite .{known}."):
        resolve("doors:two?key=left", open_suites())


def test_no_two_suites_have_one_name(tmp_path: Path) -> None:
    (tmp_path / "again.py").write_text(EXAMPLE.read_text().replace('@suite("doors")', '@suite("shop")'))
    with pytest.raises(ConfigurationError, match=r"browser_config\.suites has a second suite shop: give it another name"):
        open_suites((f"{tmp_path / 'again.py'}:shop",))
