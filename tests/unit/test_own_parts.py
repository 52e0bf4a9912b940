"""The parts of examples/ take their place: named in a configuration, checked against its keys, and used."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from agents.action_space import ActionSpace
from agents.context import build_window
from agents.parsing import parse_response
from agents.prompts import system_prompt
from agents.rendering import render_action
from bus.memory import MemoryBus
from bus.subjects import Subjects
from ops.archive.exports.export import export
from ops.archive.exports.played import Selection
from ops.archive.stream_source import StreamSource
from ops.config.agreement import require_agreement
from ops.config.loading import load_config
from ops.monitor.alerts.look import Look
from ops.monitor.rules import conditions
from ops.monitor.state import MonitorState
from schemas.bus_config import BusConfig
from schemas.context_config import ContextConfig
from schemas.errors import ConfigurationError
from schemas.extensions import ALERTS, KINDS
from schemas.feeder_config import FeederConfig
from schemas.ids import RunName
from schemas.messages import Action, ActionKind, Verdict
from schemas.model_config import ModelConfig
from tests import builders
from tests.support.runs import archive_world
from tests.support.training import ragged
from tests.support.training.learning_world import Recorder
from tests.unit.test_feeding_and_training import Played
from tests.unit.test_samplers import specs
from trainer.estimators import configured_estimator
from trainer.feeding.samplers import sampler_of
from trainer.objective.policy_objective import PolicyObjective
from trainer.token_losses import Outputs

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = EXAMPLES / "own_objective.py"
SUBJECTS = Subjects(RunName("test"), 2)
MEDIAN = [
    f"objective_config.adv_estimator='{EXAMPLE}:median'",
    f"objective_config.loss_type='{EXAMPLE}:asymmetric'",
    "objective_config.group_size=3",
    "env_config.train_tasks_rollout_size=6",
]


@pytest.mark.anyio
async def test_a_run_learns_with_an_estimator_of_its_users_own(tmp_path: Path) -> None:
    objective, recorder = load_config("default", MEDIAN).objective_config, Recorder()
    config = FeederConfig(num_iterations=3, max_staleness=1, max_concurrent=8)
    found = await Played().run(tmp_path, objective, config, recorder=recorder)
    assert len(found) == 3
    magnitudes = {abs(float(value)) for item in recorder.items for value in item.targets.advantages}
    assert magnitudes == {0.5, 1.0}, "R - median, of two where one had no verdict"


def test_its_formula_is_used() -> None:
    episodes = ragged.episodes(3)
    found = configured_estimator(load_config("default", MEDIAN).objective_config)(episodes)
    for episode, one in zip(episodes, found, strict=True):
        group = [other.score for other in episodes if other.group == episode.group]
        assert all(np.allclose(step, episode.score - float(np.median(group))) for step in one.advantages)


@pytest.mark.parametrize(("settings", "factor"), [([], 1.0), (["objective_config.settings={pessimism: 0.25}"], 0.25)])
def test_a_loss_has_settings_of_its_own(settings: list[str], factor: float) -> None:
    config = load_config("default", [*MEDIAN, *settings])
    require_agreement(config)
    objective = PolicyObjective(config.objective_config)
    targets = ragged.targets(ragged.items(ragged.sequences(1), "token-mean", 1.0))
    logprobs = torch.full_like(targets.advantages, -0.5, requires_grad=True)
    objective(Outputs(logprobs), targets).losses.sum().backward()  # type: ignore[no-untyped-call]
    expected = torch.where(targets.advantages < 0, factor, 1.0) * -targets.advantages
    assert (targets.advantages < 0).any()
    torch.testing.assert_close(logprobs.grad, expected)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("objective_config.settings={pesimism: 1}", "settings.pesimism: .* they have pessimism"),
        ("objective_config.group_size=1", "compares episodes of one task, and objective_config.group_size is 1"),
        ("objective_config.gamma=0.5", "gamma is 0.5, and has no effect where adv_estimator is .*median"),
        ("objective_config.clip_ratio_c=3", "clip_ratio_c is 3.0, and has no effect where loss_type is .*asymmetric"),
        ("objective_config.adv_estimator=none", "cloning goes with none, the other losses"),
    ],
)
def test_keys_that_they_do_not_read_are_refused(override: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        require_agreement(load_config("default", [*MEDIAN, override]))


def test_a_prompt_of_ones_own_is_asked_and_answered() -> None:
    config = load_config("default", [f"model_config.prompt_version='{EXAMPLES}/own_prompt.py:terse'"])
    window = build_window(
        builders.task(), (), builders.observation(builders.task()), context=config.context_config, model=config.model_config
    )
    (system,) = window.messages[0].content
    assert isinstance(system, str)
    assert system.startswith("You drive a web browser")
    assert '"computer_use"' in system
    click = Action(kind=ActionKind.CLICK, point=(10.0, 20.0))
    response = render_action(click, thought="Click.", model=config.model_config)
    assert response.startswith("<tool_call>\n{")
    assert parse_response(response).action == click


@pytest.mark.parametrize(
    ("mode", "click"),
    [
        ("coordinates", Action(kind=ActionKind.CLICK, point=(10.0, 20.0))),
        ("set_of_marks", Action(kind=ActionKind.CLICK, element=3)),
    ],
)
def test_a_vocabulary_of_ones_own_is_offered_and_read(mode: str, click: Action) -> None:
    named = [f"context_config.actions='{EXAMPLES}/own_vocabulary.py:tap'", f"context_config.interaction_mode={mode}"]
    space = ActionSpace.of(load_config("default", named).context_config)
    assert '"enum": ["tap_on", "finish"]' in system_prompt("vanilla", space)
    said = render_action(click, thought="Tap.", space=space)
    assert '{"name": "phone", "arguments": {"action": "tap_on", ' in said
    assert parse_response(said, space).action == click
    assert not parse_response(render_action(Action(kind=ActionKind.GO_BACK), thought="Back."), space).parsed
    with pytest.raises(ValueError, match=r"own_vocabulary\.py:tap actions have no go_back"):
        render_action(Action(kind=ActionKind.GO_BACK), thought="Back.", space=space)


def test_a_sampler_of_ones_own_draws_the_rounds() -> None:
    config = load_config("default", [f"env_config.train_tasks_sampler='{EXAMPLES}/own_sampler.py:easy_first'"]).env_config
    drawn = sampler_of(replace(config, train_tasks_rollout_size=6), specs([*range(10)][::-1]), num_members=2, seed=3)
    rounds = [{each.difficulty for each in drawn.round(index, {})} for index in range(3)]
    assert rounds[0] == {0, 1, 2}
    assert all(len(found) == 3 and max(found) < 3 * (index + 1) for index, found in enumerate(rounds))


@pytest.mark.anyio
async def test_an_export_format_of_ones_own_writes_a_run(tmp_path: Path) -> None:
    bus = MemoryBus(SUBJECTS, BusConfig(run=SUBJECTS.run, num_shards=2))
    await archive_world.fill(bus, SUBJECTS)
    done = await export(
        StreamSource(bus, SUBJECTS),
        tmp_path / "out",
        format_name=f"{EXAMPLES}/own_exporter.py:csv",
        selection=Selection(rubric="environment"),
        context=ContextConfig(),
        model=ModelConfig(),
    )
    rows = list(csv.DictReader((tmp_path / "out" / "episodes.csv").read_text().splitlines()))
    assert len(rows) == done.num_episodes > 0
    assert sum(int(row["steps"]) for row in rows) == done.num_steps > 0


def test_a_rule_of_ones_own_raises_its_alert() -> None:
    config = load_config("default", [f"monitor_config.alerts=['{EXAMPLES}/own_alert.py:blocked']"])
    state = MonitorState(config.monitor_config, began_at=0.0)
    for number in range(40):
        given = builders.judgement(builders.trajectory(builders.task(f"t{number}")))
        verdict = Verdict.EXCLUDED if number % 4 == 0 else Verdict.SUCCESS
        state.judging.apply(msgspec.structs.replace(given, verdict=verdict))
    look = Look(state=state, config=config, now=1.0)

    def fail(error: Exception, item: str) -> None:
        raise AssertionError(item) from error

    told = conditions(look, ALERTS.all(config.monitor_config.alerts), pass_over=fail)
    assert [one.sentence for one in told if one.key.kind == "blocked"] == ["25% of 40 judgements are excluded"]


def test_the_page_names_every_kind() -> None:
    page = (EXAMPLES.parent / "docs" / "extending.md").read_text()
    for kind in KINDS:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {kind.name} |")]
        assert f"`{kind.package.replace('.', '/')}/`" in row
        assert f"`{kind.group}`" in row
        assert kind.setting in row
        example = re.findall(r"examples/\w+\.py", row)[-1]
        text = (EXAMPLES.parent / example).read_text()
        assert f"@{kind.name}(" in text
        assert len(text.splitlines()) < 40
