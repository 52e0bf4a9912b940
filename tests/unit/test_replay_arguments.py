"""What `millrace replay` is asked by its arguments."""

import argparse
from pathlib import Path

import pytest

from ops.commands.replay import add_arguments, request_of
from ops.replay.request import ReplayRequest, Selection
from schemas.errors import ConfigurationError
from schemas.messages import Split


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(arguments)


def test_training_takes_the_training_split_and_has_a_folder() -> None:
    options = parsed("/runs/a", "--limit", "5", "--train", "x.y=1", "z=2")
    assert options.train == ["x.y=1", "z=2"]
    request = request_of(options)
    assert request.into.is_absolute()
    assert request.into.parts[-2:] == ("runs", "offline")
    assert request.selection == Selection(split=Split.TRAIN, limit=5)


def test_a_replay_takes_what_it_is_told() -> None:
    options = parsed("/a", "--into", "/b", "--speed", "10", "--rejudge", "--min-reward", "0.5", "--rubric", "r")
    assert request_of(options) == ReplayRequest(
        source=Path("/a"), into=Path("/b"), selection=Selection(min_reward=0.5, rubric="r"), rejudge=True, speed=10.0
    )
    assert request_of(parsed("/a", "--into", "/b", "--speed", "max")).speed is None


def test_a_replay_needs_a_target() -> None:
    with pytest.raises(ConfigurationError, match="--into"):
        request_of(parsed("/a"))
    with pytest.raises(ConfigurationError, match="holds these episodes already"):
        request_of(parsed("/a", "--into", "/b/../a"))


@pytest.mark.parametrize(
    "wrong", [("--speed", "0"), ("--speed", "inf"), ("--speed", "x"), ("--limit", "0"), ("--passes", "-1")]
)
def test_senseless_numbers_are_refused(wrong: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("/a", *wrong)
    assert wrong[0] in capsys.readouterr().err
