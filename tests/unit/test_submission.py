"""A submission for Online-Mind2Web: its schema v2 as it is published, and the words of every action."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from bus.memory import MemoryBus
from bus.subjects import Subjects
from ops.analysis.evaluation import submission
from ops.analysis.evaluation.submission import require_room, submitted_steps, write_submission
from ops.analysis.evaluation.submitted_actions import action_words, completed
from ops.archive.exports.played import Played, PlayedStep
from ops.archive.stream_source import StreamSource
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError
from schemas.ids import RunName
from schemas.messages import Action, ActionEffect, ActionKind, ActionResult, Element, Observation, Outcome
from tests import builders
from tests.support.runs import archive_world as world

pytestmark = pytest.mark.anyio
_PAGE_FIRST, _VERB_FIRST = r"(?:NAVIGATE|GO_BACK)", r"(?:CLICK|TYPE|SCROLL|HOVER|WAIT|PRESS_KEY|SELECT)"
_TARGET = r"(?:page|coords\(\d+, \d+\))"
_DONE = rf"(?:{_TARGET} -> {_PAGE_FIRST} -> .+|{_VERB_FIRST} {_TARGET} -> .+)(?: \| (?:SUCCESS|FAILED))?"
GRAMMAR = re.compile(rf"{_DONE}|TASK_COMPLETE -> ANSWER:.*")
"""Schema v2's grammar A."""
SEEN = replace(builders.observation(builders.task()), elements=(Element(id=4, tag="a", text="x", box=(10, 20, 30, 40)),))


@pytest.mark.parametrize("kind", [kind for kind in ActionKind if kind is not ActionKind.ANSWER])
def test_every_action_has_words_of_the_grammar(kind: ActionKind) -> None:
    texts = ("", "{a} %s", "two\nlines | SUCCESS")
    for action in (
        Action(kind=kind, text=text, keys=("Control+a",), point=point) for text in texts for point in (None, (1.0, 2.0))
    ):
        said = action_words(action, SEEN, hit="", status="FAILED")
        assert GRAMMAR.fullmatch(said), said
        assert said.endswith(" | FAILED")


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (Action(kind=ActionKind.CLICK, point=(500.0, 1000.0)), 'CLICK coords(80, 209) -> click button "Save" | SUCCESS'),
        (Action(kind=ActionKind.CLICK, element=4), 'CLICK coords(25, 40) -> click button "Save" | SUCCESS'),
        (Action(kind=ActionKind.CLICK, element=9), 'CLICK page -> click button "Save" | SUCCESS'),
        (
            Action(kind=ActionKind.TYPE, point=(0.0, 0.0), text="{text}"),
            "TYPE coords(0, 0) -> type '{text}' into button \"Save\" and press Enter | SUCCESS",
        ),
        (Action(kind=ActionKind.SCROLL, direction="up"), "SCROLL page -> scroll up | SUCCESS"),
        (
            Action(kind=ActionKind.NAVIGATE, text="https://a.example"),
            "page -> NAVIGATE -> direct navigation to an address | SUCCESS",
        ),
        (
            Action(kind=ActionKind.DRAG, point=(0.0, 0.0), end_point=(1000.0, 1000.0)),
            "CLICK coords(0, 0) -> drag from here to coords(159, 209) | SUCCESS",
        ),
        (Action(kind=ActionKind.SWITCH_TAB, tab=2), "CLICK page -> switch to tab 2 | SUCCESS"),
    ],
)
def test_actions_are_said_in_pixels_and_by_what_they_reached(action: Action, said: str) -> None:
    assert action_words(action, SEEN, hit='button "Save"', status="SUCCESS") == said


def seen(number: int, **fields: Any) -> Observation:
    of = builders.task()
    return replace(builders.observation(of, number, data=b"shot %d" % number), url=f"http://site/{number}", **fields)


def acted(number: int, action: Action, **fields: Any) -> PlayedStep:
    request = replace(builders.step_request(builders.task(), number), action=action, thought=f"thought {number}")
    return PlayedStep(seen(number, **fields), request, False)


def test_a_step_is_what_was_seen_done_and_thought_together() -> None:
    played = Played(
        replace(builders.trajectory(builders.task(), outcome=Outcome.ANSWERED), answer="It is\n42."),
        None,
        (
            acted(0, Action(kind=ActionKind.NAVIGATE, text="https://a.example")),
            acted(1, Action(kind=ActionKind.CLICK, point=(1.0, 2.0)), effect=ActionEffect.CHANGED),
            acted(2, Action(kind=ActionKind.WAIT), effect=ActionEffect.UNCHANGED, hit="nothing"),
            acted(3, Action(kind=ActionKind.ANSWER, text="It is\n42.")),
        ),
        None,
    )
    steps = [step for step, _ in submitted_steps(played)]
    assert [(step.step, step.screenshot) for step in steps] == [(number, f"000{number}.jpg") for number in range(4)]
    assert [step.action_status for step in steps] == ["SUCCESS", "FAILED", None, None]
    assert [step.url for step in steps] == ["https://a.example", "http://site/1", "http://site/2", "http://site/3"]
    assert [step.thought for step in steps] == [f"thought {number}" for number in range(4)]
    assert steps[-1].action == "TASK_COMPLETE -> ANSWER: It is 42." == completed("It is\n42.")
    assert [picture.data for _, picture in submitted_steps(played)] == [b"shot %d" % number for number in range(4)]


def test_an_episode_without_an_answer_ends_with_an_empty_one_and_what_was_seen_last() -> None:
    steps = (acted(0, Action(kind=ActionKind.CLICK, point=(1.0, 2.0))),)
    played = Played(builders.trajectory(builders.task(), outcome=Outcome.STEP_LIMIT), None, steps, seen(1))
    [click, end] = submitted_steps(played)
    assert (click[0].action_status, end[0].action, end[0].thought) == ("FAILED", "TASK_COMPLETE -> ANSWER:", None)
    assert (end[0].url, end[1].data) == ("http://site/1", b"shot 1")


def test_every_action_of_an_answer_is_a_step_with_what_it_came_to_itself() -> None:
    asked = (
        Action(kind=ActionKind.CLICK, point=(1.0, 2.0)),
        Action(kind=ActionKind.CLICK, point=(1.0, 2.0)),
        Action(kind=ActionKind.WAIT),
        Action(kind=ActionKind.TYPE, point=(500.0, 500.0), text="kites", enter=False),
        Action(kind=ActionKind.PRESS, keys=("Enter",)),
    )
    results = (
        ActionResult(hit='link "Map"', error="a new window was opened"),
        ActionResult(error="nothing is there"),
        ActionResult(),
        ActionResult(hit='textbox "Search"', changes=("it says 'kites'",)),
    )
    then = seen(1, hit='button "Go"', effect=ActionEffect.CHANGED, earlier_results=results)
    several = acted(0, asked[0])
    several = dataclasses.replace(several, request=replace(several.request, further=asked[1:]))
    trajectory = builders.trajectory(builders.task(), outcome=Outcome.STEP_LIMIT)
    found = list(submitted_steps(Played(trajectory, None, (several,), then)))
    assert [step.action for step, _ in found] == [
        'CLICK coords(0, 0) -> click link "Map"',
        "CLICK coords(0, 0) -> click the element there | FAILED",
        "WAIT page -> wait 2 s",
        "TYPE coords(80, 105) -> type 'kites' into textbox \"Search\" | SUCCESS",
        "PRESS_KEY page -> press Enter | SUCCESS",
        "TASK_COMPLETE -> ANSWER:",
    ]
    assert [step.screenshot for step, _ in found] == [f"000{number}.jpg" for number in range(6)]
    assert [picture.data for _, picture in found] == [b"shot 0"] * 5 + [b"shot 1"]
    assert [step.thought for step, _ in found] == ["thought 0"] * 5 + [None]


def test_an_answer_may_stand_behind_other_actions() -> None:
    several = acted(0, Action(kind=ActionKind.CLICK, point=(1.0, 2.0)))
    request = replace(several.request, further=(Action(kind=ActionKind.ANSWER, text="42"),))
    trajectory = replace(builders.trajectory(builders.task(), outcome=Outcome.ANSWERED), answer="42")
    played = Played(trajectory, None, (dataclasses.replace(several, request=request),), None)
    [click, end] = [step for step, _ in submitted_steps(played)]
    assert (click.action, click.action_status) == ("CLICK coords(0, 0) -> click the element there", None)
    assert (end.action, end.step, end.thought) == ("TASK_COMPLETE -> ANSWER: 42", 1, "thought 0")


async def test_a_submission_is_whole_and_as_the_published_rules_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subjects = Subjects(RunName("test"), 2)
    bus = MemoryBus(subjects, BusConfig(run=subjects.run, num_shards=2))
    await world.fill(bus, subjects)
    source = StreamSource(bus, subjects)
    ended = {str(one.task.task): one async for one in source.trajectories() if one.episode.endswith("-m0")}
    lengths = dict.fromkeys([*ended, "never-played"], 3)
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "mine").touch()
    done = await write_submission(source, tmp_path / "out", lengths)
    folders = sorted((tmp_path / "out").iterdir())
    assert done.num_tasks == len(folders) > 1
    assert {folder.name for folder in folders} | set(done.without) == set(lengths)
    assert "never-played" in done.without
    for folder in folders:
        check(folder, ended[folder.name].answer)
    assert named(tmp_path, "*partial*/*") == ["mine"], "what is not its own stays"
    monkeypatch.setattr(submission, "write_whole", Mock(side_effect=OSError("full")))
    with pytest.raises(OSError, match="full"):
        await write_submission(source, tmp_path / "other", lengths)
    assert named(tmp_path, "other*") == []
    with pytest.raises(ConfigurationError, match="is there already"):
        require_room(tmp_path / "out")


def named(folder: Path, pattern: str) -> list[str]:
    return [path.name for path in folder.glob(pattern)]


def check(folder: Path, answer: str) -> None:
    """The nine rules of schema v2, and its keys."""
    said = json.loads((folder / "result.json").read_text())
    assert set(said) == {"schema_version", "task", "task_id", "agent_final_answer", "reference_length", "action_history"}
    assert (said["schema_version"], said["task_id"], said["reference_length"]) == ("online-mind2web-v2", folder.name, 3)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", said["task_id"])
    history = said["action_history"]
    assert [step["step"] for step in history] == list(range(len(history)))
    for step in history:
        assert set(step) == {"step", "screenshot", "url", "action", "action_status", "thought"}
        assert re.fullmatch(r"\d{4}\.(png|jpg)", step["screenshot"])
        assert (folder / "trajectory" / step["screenshot"]).stat().st_size > 0
        assert GRAMMAR.fullmatch(step["action"]), step["action"]
        assert step["action_status"] is None or step["action"].endswith(f" | {step['action_status']}")
    last = history[-1]["action"]
    assert last.startswith("TASK_COMPLETE")
    assert said["agent_final_answer"] == (answer or None)
    assert last.removeprefix("TASK_COMPLETE -> ANSWER:").split() == answer.split()
    assert len(list((folder / "trajectory").iterdir())) == len(history)
