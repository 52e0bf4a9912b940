"""The suites of grids by value: their websites, their documents, their oracle's actions, their lines of task files."""

import json
import re
from pathlib import Path

import pytest

from browser_workers.grids.suite import GridSuite
from browser_workers.grids.tasks import grid_tasks
from browser_workers.site import NOT_FOUND, SiteRequest
from browser_workers.suites import UnknownWebsite, open_suites, resolve
from browser_workers.suites.frozen_lake import FrozenLakeSuite
from browser_workers.suites.sokoban import SokobanSuite
from ops.cli import main
from ops.config.agreement import require_agreement
from ops.config.loading import load_config
from schemas.messages import Action, ActionKind

LAKES, ROOMS = FrozenLakeSuite(), SokobanSuite()


def facts(suite: GridSuite, website: str) -> dict[str, object]:
    """What the page's script is given."""
    opening = resolve(website, {suite.name: suite})
    assert opening.site is not None
    path, _, query = opening.url.removeprefix(opening.site.origin).partition("?")
    body = opening.site.respond(SiteRequest(path, query)).body.decode()
    (found,) = re.findall(r"const LEVEL = (\{.*\});</script>", body)
    read: dict[str, object] = json.loads(found)
    return read


def test_they_stand_among_the_suites() -> None:
    assert {"frozen_lake", "sokoban"} <= open_suites().keys()


def test_a_website_is_a_level() -> None:
    lake = facts(LAKES, "frozen_lake:lake?seed=3&hole_reward=-1&step_reward=-.01&idle_reward=-0.05&text=on")
    assert (lake["size"], lake["holes"], lake["start"], lake["goal"], lake["slides"]) == (4, [4, 6, 10], 12, 2, [])
    assert (lake["holeReward"], lake["stepReward"], lake["idleReward"]) == (-1, -0.01, -0.05)
    assert (lake["controls"], lake["text"]) == ("buttons", True)
    assert lake["away"] == [], "the page knows no way that it does not reward"
    room = facts(ROOMS, "sokoban:room?boxes=2&size=7&controls=keys&box_reward=.1")
    assert (room["size"], room["boxReward"], room["controls"], room["text"]) == (7, 0.1, "keys", False)
    assert room["stepReward"] == room["idleReward"] == 0


def test_the_address_is_as_a_browser_has_it() -> None:
    assert LAKES.resolve("lake", "slip=.5").url == "http://frozen-lake.millrace.test/lake?slip=.5"
    opening = LAKES.resolve("lake", "slip=2/3&seed=1")
    assert opening.url == "http://frozen-lake.millrace.test/lake?slip=2%2F3&seed=1"
    assert json.dumps(opening.url) in opening.probe, "no other level rewards"
    assert opening.keeps_no_state


@pytest.mark.parametrize(
    ("website", "said"),
    [
        ("frozen_lake:pond", "no page 'pond': write frozen_lake:lake\\?seed=0"),
        ("frozen_lake:lake?size=9", "frozen_lake:lake: size is '9': write a whole number from 3 to 8"),
        ("frozen_lake:lake?size=four", "size is 'four': write a whole number from 3 to 8"),
        ("frozen_lake:lake?seed=-1", "seed is '-1': write a whole number from 0"),
        ("frozen_lake:lake?min_moves=7", "min_moves is '7': write a whole number from 1 to 6"),
        ("frozen_lake:lake?slip=1", r"slip is '1': write a number from 0 to 0\.9, as in slip=0\.2 or slip=1/5"),
        ("frozen_lake:lake?slip=1/0", "slip is '1/0': write a number"),
        ("frozen_lake:lake?slip=nan", "slip is 'nan': write a number"),
        ("frozen_lake:lake?slip=1e-1", "slip is '1e-1': write a number"),
        ("frozen_lake:lake?holes=1e999999999", "holes is '1e999999999': write a number"),
        (f"frozen_lake:lake?holes=0.{'3' * 100}", "holes is '0.3"),
        ("frozen_lake:lake?holes=1/2/3", "holes is '1/2/3': write a number"),
        ("frozen_lake:lake?holes=/", "holes is '/': write a number"),
        ("frozen_lake:lake?holes=", "holes is '': write a number from 0 to 0.5"),
        ("frozen_lake:lake?step_reward=inf", "step_reward is 'inf': write a number from -10 to 10, as in step_reward=-0.01"),
        ("frozen_lake:lake?text=yes", "text is 'yes': write off or on"),
        ("frozen_lake:lake?controls=mouse", "controls is 'mouse': write buttons or keys"),
        ("frozen_lake:lake?slipp=1", "no parameter 'slipp'; did you mean slip"),
        ("frozen_lake:lake?boxes=1", "no parameter 'boxes'; did you mean holes. Write one of seed, size"),
        ("frozen_lake:lake?size=4&size=5", "says a parameter twice"),
        ("sokoban:room?boxes=3", "boxes is '3': write a whole number from 1 to 2"),
        ("sokoban:room?min_moves=9&max_moves=8", "max_moves is '8': write a whole number from 9 to 30"),
        ("sokoban:room?boxes=2&max_moves=7", "max_moves is '7': write a whole number from 8 to 30"),
    ],
)
def test_wrong_websites_are_refused_with_what_to_write(website: str, said: str) -> None:
    with pytest.raises(UnknownWebsite, match=said):
        resolve(website, {"frozen_lake": LAKES, "sokoban": ROOMS})


def test_other_addresses_are_not_found() -> None:
    site = LAKES.resolve("lake", "").site
    assert site is not None
    for path, query in (("/", ""), ("/pond", ""), ("/lake", "size=99")):
        assert site.respond(SiteRequest(path, query)) == NOT_FOUND


# the oracle -----------------------------------------------------------------------------------------------------------

_BUTTONS = [[0.4, 0.9], [0.9, 0.9], [0.6, 0.9], [0.1, 0.9]]


@pytest.mark.parametrize(
    ("stand", "action"),
    [
        ({"state": {"player": 1}, "buttons": _BUTTONS}, Action(kind=ActionKind.CLICK, point=(900.0, 900.0))),
        ({"state": {"player": 1}, "buttons": []}, Action(kind=ActionKind.PRESS, keys=("ArrowRight",))),
        ({"state": {"player": 12}, "buttons": []}, Action(kind=ActionKind.PRESS, keys=("ArrowUp",))),
        # Where there is nothing more to do.
        ({"state": {"player": 2}, "buttons": []}, None),
    ],
)
def test_the_oracle_goes_on_from_where_the_figure_stands(stand: dict[str, object], action: Action | None) -> None:
    solution = LAKES.resolve("lake", "seed=3").solution
    assert solution is not None
    assert solution.action(0, json.dumps(stand)) == action
    assert solution.action(0, "") is None


# task files -----------------------------------------------------------------------------------------------------------


def test_lines_of_a_task_file() -> None:
    lines = grid_tasks(LAKES, (4, 6), range(5, 7), "slip=2/3&text=on", first_id=10)
    assert [line["task_id"] for line in lines] == [10, 11, 12, 13]
    assert [line["website"] for line in lines[1:3]] == [
        "frozen_lake:lake?size=4&seed=6&slip=2%2F3&text=on",
        "frozen_lake:lake?size=6&seed=5&slip=2%2F3&text=on",
    ]
    assert {line["subdomain"] for line in lines} == {"4x4", "6x6"}
    assert lines[0]["task_name"] == facts(LAKES, str(lines[0]["website"]))["utterance"]
    for said in ("67% of all moves", "Each press of Up, Down, Left or Right is one move.", "@ you, _ ice, O hole, G flag"):
        assert said in str(lines[0]["task_name"])


def test_difficulty_goes_by_the_number_of_moves() -> None:
    rooms = {
        most: grid_tasks(ROOMS, (8,), range(3), f"min_moves={least}&max_moves={most}")
        for least, most in ((1, 5), (6, 10), (11, 30))
    }
    assert [{line["difficulty"] for line in lines} for lines in rooms.values()] == [{2}, {5}, {8}]
    assert {line["difficulty"] for line in grid_tasks(LAKES, (4,), range(20), "slip=2/3")} == {8}


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rooms.jsonl"
    assert main(["tasks", "sokoban", "--seeds", "0:3", "--parameters", "boxes=2&text=on", "--out", str(out)]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["website"] for line in lines] == [f"sokoban:room?size=6&seed={n}&boxes=2&text=on" for n in range(3)]
    assert "3 tasks in" in capsys.readouterr().out
    assert main(["tasks", "frozen-lake", "--parameters", "slipp=1", "--out", str(out)]) == 78
    assert "did you mean slip?" in capsys.readouterr().err
    assert main(["tasks", "frozen-lake", "--parameters", "seed=1", "--out", str(out)]) == 78
    assert "leave it to --seeds" in capsys.readouterr().err


# their page -----------------------------------------------------------------------------------------------------------

_PAGE = (Path(__file__).parents[2] / "docs" / "grid_worlds.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("suite", [LAKES, ROOMS], ids=lambda suite: suite.name)
def test_its_table_has_every_parameter(suite: GridSuite) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", _PAGE, flags=re.MULTILINE)
    with pytest.raises(UnknownWebsite) as refused:
        suite.level("no_such=1")
    known = str(refused.value).partition("one of ")[2].split(", ")
    assert sorted(name for name, of in rows if of in ("both", suite.name)) == sorted(known)


def test_its_run_is_one(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```", _PAGE, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "grid.yaml").write_text(block)
    config = load_config(str(tmp_path / "grid.yaml"), [])
    require_agreement(config)
    assert (config.objective_config.adv_estimator, config.objective_config.use_multi_turn_reward) == ("bi_level_gae", True)
    assert config.context_config.interaction_mode == "set_of_marks"
