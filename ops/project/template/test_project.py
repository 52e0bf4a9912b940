"""Every task of yours can be solved, and your judge sees it: each is played once in Chromium, without a model. `pytest` runs
it.

A task whose suite knows no way through it can be played by a function of yours that says what is done at what is seen:
`rehearse("config.yaml", player)`.
"""

from pathlib import Path

import pytest

from ops.project.rehearsal import rehearse
from schemas.messages import Action, ActionKind, Observation


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)  # paths in config.yaml count from here


def test_the_way_of_a_task_earns_the_whole_reward() -> None:
    rewards = {task: judgement.reward for task, judgement in rehearse("config.yaml").items()}
    assert rewards == {"hours": 1.0, "fern": 1.0, "moss": 1.0}


def test_giving_up_earns_nothing() -> None:
    def give_up(seen: Observation) -> Action:
        return Action(kind=ActionKind.ANSWER, text="I do not know.")

    assert {judgement.reward for judgement in rehearse("config.yaml", give_up).values()} == {0.0}
