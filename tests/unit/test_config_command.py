"""`millrace config`: every value with its origin, and keys explained."""

import json
from pathlib import Path

import pytest
import yaml

from ops.cli import main
from ops.config.display import as_yaml, scalar
from ops.config.explaining import explained
from ops.config.key_docs import KeyDoc, key_docs
from ops.config.loading import load_config
from ops.config.recipes import RECIPES
from ops.config.resolved import Resolved, Value, resolve
from ops.config.schema import known_keys
from ops.run.folder import RunFolder
from schemas.errors import ConfigurationError

DOCS = Path(__file__).parents[2] / "docs"


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["config", *arguments]) == 0
    return capsys.readouterr().out


def origins_in(text: str) -> dict[str, str]:
    """By the key's last name."""
    lines = [line.partition("  # ") for line in text.splitlines() if "  # " in line]
    return {line.strip().partition(":")[0]: origin for line, _, origin in lines}


@pytest.fixture(scope="module")
def usual() -> Resolved:
    return resolve("default")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "team.yaml").write_text("defaults: [rollout_train]\npolicy_config:\n  top_k: 5\n  top_p: 0.5\n")
    file = tmp_path / "mine.yaml"
    file.write_text(
        "# Mine.\ndefaults: [team]\npolicy_config: {top_p: 0.6}\nenv_config:\n  max_vllm_sessions: 9\n  wait_timeout: 2400\n"
        "  difficulty_ratio:\n    easy: {range: [1, 3], weight: 2}\nopenai_config: {}\njudge_config: {label: big}\n"
    )
    return file


def test_the_last_file_or_override_that_says_something_is_the_origin(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overrides = (
        "env_config.train_difficulty_max_steps={easy: 1, medium: 2, hard: 3}",
        "objective=rloo",
        "~policy_config.min_p",
    )
    text = said(capsys, "--config", str(mine), *overrides)
    found = origins_in(text)
    assert (found["top_k"], found["top_p"], found["max_num_seqs"]) == ("team.yaml:3", "mine.yaml:3", "mine.yaml:5")
    committed = [found[name].partition(":")[0] for name in ("mode", "interaction_mode")]
    assert committed == ["rollout_train.yaml", "default.yaml"]
    assert found["adv_estimator"].startswith("objective/rloo.yaml:")
    assert (found["difficulty_ratio"], found["min_p"], found["gamma"]) == ("mine.yaml:8", "default", "default")
    assert "# env_config.wait_timeout (mine.yaml:6): has no effect here" in text
    lines = text.splitlines()
    start = lines.index("  train_difficulty_max_steps:")
    assert [line.split("  # ")[1] for line in lines[start + 1 : start + 4]] == ["override"] * 3
    assert found["rubrics"] == "by judge_config.label, mine.yaml:10"


def test_what_is_printed_loads_to_the_same(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = mine.with_name("printed.yaml")
    printed.write_text(said(capsys, str(mine), "objective=grpo", "save_path='a: b # c'"))
    assert load_config(printed) == load_config(mine, ["objective=grpo", "save_path='a: b # c'"])


def test_only_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "default", "policy_config.top_k=5", "policy_config.top_p=0.99", "--changed")
    assert yaml.safe_load(text) == {"policy_config": {"top_k": 5}}
    found = json.loads(said(capsys, "--changed", "--json", "policy_config.top_k=5"))
    assert found == {"values": {"policy_config.top_k": {"value": 5, "origin": "override", "changed": True}}, "notes": []}


def test_a_runs_own_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RunFolder(tmp_path).create(load_config("quickstart", ["trainer_config.seed=4"]))
    found = json.loads(said(capsys, "--run-dir", str(tmp_path), "policy_config.top_k=5", "--json"))["values"]
    assert found["trainer_config.seed"]["value"] == 4
    assert found["trainer_config.seed"]["origin"].startswith(f"{tmp_path}/config.yaml:")
    assert found["policy_config.top_k"]["origin"] == "override"
    assert set(found) == set(known_keys())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nowhere",), "there is no recipe 'nowhere'"),
        (("default", "quickstart"), "default and quickstart are several configurations: name one"),
        (("--run-dir", "/nowhere"), "/nowhere holds no run: give the --run-dir"),
        (("policy_config.top_k=lots",), "policy_config.top_k is 'lots': write a whole number"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(
    arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", *arguments]) == 78
    assert sentence in capsys.readouterr().err


def test_a_key_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    written = (RECIPES / "quickstart.yaml").read_text().splitlines()
    line = written.index("  task_ack_wait_s: 10.0") + 1
    text = said(capsys, "quickstart", "--explain", "bus_config.task_ack_wait_s")
    assert text.splitlines() == [
        "bus_config.task_ack_wait_s",
        "  A browser worker that is silent for so long loses its episode to another.",
        "",
        "  type     a number",
        "  unit     seconds",
        "  default  8.0",
        f"  here     10.0   (quickstart.yaml:{line})",
    ]


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("feeder_config.mode", "  type     one of sync, async, offline, eval, rollout"),
        ("env_config.difficulty_ratio", "an entry has range, weight"),
        ("env_config.max_vllm_sessions", "WebGym's name for policy_config.max_num_seqs"),
        ("env_config.screenshot_comparison_workers", "each episode compares its own screenshots"),
        ("env_config.http_pools", "  env_config.http_pools.allocate = 4   (default)\n    Contexts that are being made."),
    ],
)
def test_choices_entries_other_names_and_groups_are_explained(key: str, part: str, usual: Resolved) -> None:
    assert part in "\n".join(explained(key, usual))


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("env_config.compltion_threshold", "no key env_config.compltion_threshold: did you mean env_config.completion_"),
        ("temperature", "did you mean policy_config.temperature"),
        ("rollout_manager.window_size", "is a key of VAGEN: write context_config.num_rounds here"),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest(key: str, sentence: str, usual: Resolved) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        list(explained(key, usual))


def test_every_key_says_what_it_means() -> None:
    docs = key_docs()
    assert [key for key in docs if not docs[key].is_group] == list(known_keys())
    assert [doc.key for doc in docs.values() if not doc.text] == []


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("env_config.task_timeout_minutes", "minutes"),
        ("simulation_config.step_latency_ms", "milliseconds"),
        ("bus_config.weights_timeout_s", "seconds"),
        ("policy_config.max_num_seqs", ""),
        ("env_config.train_tasks", ""),
    ],
)
def test_units_stand_at_the_end_of_names(key: str, unit: str) -> None:
    doc = key_docs()[key]
    assert isinstance(doc, KeyDoc)
    assert doc.unit == unit


def test_colours_say_what_was_changed() -> None:
    values = {
        "a.b.c": Value("a.b.c", 1, "override", True),
        "a.d": Value("a.d", "x", "default", False),
    }
    lines = list(as_yaml(Resolved("r", values, (), {})))
    assert [line.plain.rstrip() for line in lines] == ["a:", "  b:", "    c: 1  # override", "  d: x    # default"]
    assert [str(span.style) for span in lines[2].spans] == ["cyan", "bold", "green"]
    assert "dim" in [str(span.style) for span in lines[3].spans]


@pytest.mark.parametrize("value", ["a\nb: # c", "7", "off", "", None, 1e-6, True, ["a", "b c"], {"x": {"range": [1, 3]}}])
def test_a_value_is_one_line_that_reads_back(value: object) -> None:
    assert "\n" not in scalar(value)
    assert yaml.safe_load(scalar(value)) == value


@pytest.mark.parametrize("page", ["keys", "names"])
def test_the_tables_in_docs_are_current(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = said(capsys, "--markdown", page)
    assert (DOCS / f"configuration_{page}.md").read_text() == made, f"millrace config --markdown {page} > docs/..."


def test_the_origin_of_every_key_is_known() -> None:
    found = resolve("quickstart", ["policy_config.top_k=5"])
    for value in found.values.values():
        assert value.origin
        assert not (value.is_changed and value.origin == "default"), value.key
