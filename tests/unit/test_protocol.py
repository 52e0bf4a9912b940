"""Protocols: what a file may say, what of it counts in its hash, and that nothing else has a say in what it says."""

import hashlib
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ops.analysis.evaluation.pins import PINS, pinned, require_free
from ops.analysis.evaluation.protocol import Apart, Judging, Protocol, TaskChoice
from ops.analysis.evaluation.protocol_file import find_protocol, keys, read_protocol
from ops.analysis.evaluation.task_choice import choose, reference_lengths
from ops.config.loading import load_config
from ops.config.overrides import as_overrides
from ops.config.protocols import PROTOCOLS, protocol_names
from ops.config.schema import known_keys
from schemas.env_config import DifficultySteps
from schemas.errors import ConfigurationError, TaskFileError
from tests.unit.test_docs import ROOT
from trainer.feeding import task_files
from trainer.feeding.task_values import decoded

SMALL: dict[str, Any] = {"name": "small", "tasks": {"file": "t.jsonl"}, "judge": {"name": "environment_v1"}}


def written(folder: Path, content: object) -> Path:
    path = folder / "p.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def complaint(folder: Path, content: object) -> str:
    with pytest.raises(ConfigurationError) as raised:
        read_protocol(written(folder, content))
    return str(raised.value)


# the file ---------------------------------------------------------------------------------------------------------------


def test_a_file_says_only_what_differs_from_the_defaults(tmp_path: Path) -> None:
    said = read_protocol(written(tmp_path, SMALL | {"steps": 7, "seeds": [3, 1], "sampling": {"temperature": 0, "top_k": 20}}))
    assert said.step_caps == DifficultySteps(easy=7, medium=7, hard=7)
    assert (said.seeds, said.sampling.temperature, said.sampling.top_k, said.sampling.top_p) == ((3, 1), 0.0, 20, 1.0)
    assert said.apart.blocked == ("blocked",)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"samplin": {}}, "samplin is not a key of a protocol; did you mean sampling?"),
        (
            {"sampling": {"temprature": 1}},
            "sampling.temprature is not a key of a protocol; did you mean sampling.temperature?",
        ),
        ({"top_p": 1}, "top_p is not a key of a protocol; did you mean sampling.top_p?"),
        ({"sampling": {"temperature": "hot"}}, "sampling.temperature is 'hot': write a number"),
        ({"sampling": 3}, "sampling is 3: write keys with their values (temperature, top_p"),
        ({"steps": "many"}, "steps is 'many': write a whole number or keys below it (easy, medium, hard)"),
        ({"steps": 0}, "steps is 0: write a whole number from 1 to 10,000"),
        ({"steps": {"easy": 1, "medium": 2}}, "steps.hard is missing: write it"),
        ({"seeds": []}, "seeds is empty"),
        ({"seeds": [1, 1]}, "seeds has a number twice"),
        ({"seeds": [-1]}, "seeds has -1"),
        ({"repeats": 0}, "repeats is 0"),
        ({"repeats": 10**11}, "repeats is 100000000000: write a whole number from 1 to 1,000"),
        ({"repeats": 10**30}, "repeats has the number 1000000000000000000000000000000: write one up to"),
        ({"steps": 10**15}, "steps is 1000000000000000: write a whole number from 1 to 10,000"),
        ({"steps": {"easy": 1, "medium": 2, "hard": 10**6}}, "steps.hard is 1000000"),
        ({"seeds": [2**40]}, "seeds has 1099511627776: write whole numbers from 0 to"),
        ({"seeds": list(range(2000))}, "seeds has 2000 numbers"),
        ({"retries": -1}, "retries is -1"),
        ({"minutes": float("nan")}, "minutes has the number nan"),
        ({"minutes": -1}, "minutes is -1"),
        ({"sampling": {"temperature": float("inf")}}, "sampling.temperature has the number inf"),
        ({"sampling": {"temperature": -1}}, "sampling.temperature is -1"),
        ({"sampling": {"top_k": 10**9}}, "sampling.top_k is 1000000000"),
        ({"prompt": "${oc.env:HOME}"}, "prompt has '${oc.env:HOME}': write the value itself"),
        (
            {"configuration": {"browser_config.denied_hosts": ["a", "${x}"]}},
            "configuration has '${x}': write the value itself",
        ),
        ({"configuration": {"save_path": {"a", "b"}}}, "configuration has {"),
        ({"context": {"screenshots": 0}}, "context.screenshots is 0"),
        ({"apart": {"blocked": ["captcha"]}}, "apart.blocked is ['captcha']: write a list, each one of blocked, not_opened"),
        ({"apart": {"invalid": ["judge_error"]}}, "apart.invalid is ['judge_error']"),
        ({"apart": {"invalid": ["blocked"]}}, "apart has blocked as blocked and as invalid"),
        ({"tasks": {}}, "tasks.file is missing: write it"),
        ({"tasks": {"file": "t", "sha256": "abc"}}, "tasks.sha256 is 'abc': write 64 digits"),
        ({"configuration": {"policy_config.top_k": 2}}, "configuration has policy_config.top_k: write it as sampling.top_k"),
        ({"configuration": {"bus_config.ur": ""}}, "did you mean bus_config.url?"),
        ({"configuration": {"bus_config": {"url": ""}}}, "Write keys in full, as in bus_config.url"),
    ],
)
def test_a_mistake_is_said_by_its_key_with_what_to_write(wrong: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert said in complaint(tmp_path, SMALL | wrong)


def test_all_mistakes_of_a_file_are_said_at_once(tmp_path: Path) -> None:
    said = complaint(tmp_path, {"nam": "x", "repeats": "often", "judge": {"votes": 1.5}})
    for part in (
        "nam is not a key",
        "name is missing",
        "tasks is missing",
        "repeats is 'often'",
        "judge.name is",
        "judge.votes",
    ):
        assert part in said


def test_what_is_no_protocol_at_all_is_refused_in_a_sentence(tmp_path: Path) -> None:
    assert "holds no keys" in complaint(tmp_path, "")
    assert "holds no keys" in complaint(tmp_path, "[1, 2]")
    assert "is no YAML" in complaint(tmp_path, "a: [")
    assert "is no YAML" in complaint(tmp_path, "a: 2024-99-99")
    assert "stand too deep" in complaint(tmp_path, "[" * 1200 + "]" * 1200)
    for aliased in ("name: &a [*a]", "configuration: {browser_config.denied_hosts: &a [*a]}", "a: &a {b: 1}\nc:\n  <<: *a"):
        assert "p.yaml has an alias (*name): write what it stands for in its place" in complaint(tmp_path, aliased)
    with pytest.raises(
        ConfigurationError, match=r"none\.yaml cannot be read .*: write the path .* or one of openwebrl-deepshop"
    ):
        find_protocol(str(tmp_path / "none.yaml"))


_NAMES = st.sampled_from([*Protocol.__annotations__, *keys(), "browser_config.denied_hosts", "x"])
_TREE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.sets(st.integers(), max_size=2) | st.dictionaries(_NAMES, inner),
    max_leaves=8,
)
_WRITTEN = st.text(alphabet="abc:&*[]{}<>!-|?'\" \n0.9e+_~$#%@", max_size=30)


@settings(max_examples=50)
@given(tree=_TREE, text=_WRITTEN)
@example(tree={}, text="configuration: {browser_config.denied_hosts: &a [*a]}")
@example(tree={}, text="minutes: 0:" + "9" * 5000)
@example(tree={}, text="seeds: [" + "9" * 5000 + "]")
def test_no_file_gives_more_than_a_sentence(tree: object, text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, small = tmp_path_factory.getbasetemp(), yaml.safe_dump(SMALL)
    for content in (yaml.safe_dump(SMALL | tree if isinstance(tree, dict) else tree), text, f"{small}\n{text}"):
        said = protocol_or_complaint(written(folder, content))
        if isinstance(said, str):
            assert "p.yaml" in said
        else:
            assert as_overrides(said.configuration | pinned(said))
            assert said.sha256


def protocol_or_complaint(path: Path) -> Protocol | str:
    try:
        return read_protocol(path)
    except ConfigurationError as error:
        return str(error)


# its hash ---------------------------------------------------------------------------------------------------------------


def test_files_that_mean_the_same_have_one_hash(tmp_path: Path) -> None:
    plain = read_protocol(written(tmp_path, SMALL)).sha256
    same = [
        SMALL | {"about": "words", "differs": ["words"]},
        SMALL | {"repeats": 1, "sampling": {"temperature": 1, "top_p": 1.0}, "steps": {"easy": 30, "medium": 50, "hard": 70}},
        SMALL | {"apart": {"invalid": ["failed", "excluded", "timed_out"]}},
        SMALL | {"configuration": {"bus_config.url": "nats://127.0.0.1:4222"}},
        dict(reversed(SMALL.items())),
    ]
    assert {read_protocol(written(tmp_path, each)).sha256 for each in same} == {plain}
    assert read_protocol(written(tmp_path, "# a comment\n" + yaml.safe_dump(SMALL))).sha256 == plain


def test_whatever_decides_figures_changes_the_hash(tmp_path: Path) -> None:
    others = [
        SMALL,
        SMALL | {"name": "other"},
        SMALL | {"steps": 30},
        SMALL | {"seeds": [1]},
        SMALL | {"seeds": [0, 1]},
        SMALL | {"sampling": {"temperature": 0.6}},
        SMALL | {"viewport": {"height": 1000}},
        SMALL | {"judge": {"name": "environment_v1", "votes": 3}},
        SMALL | {"apart": {"blocked": ["blocked", "not_opened"]}},
        SMALL | {"tasks": {"file": "t.jsonl", "first": 3}},
        SMALL | {"configuration": {"browser_config.denied_hosts": ["a.example"]}},
    ]
    assert len({read_protocol(written(tmp_path, each)).sha256 for each in others}) == len(others)


def test_the_hash_stays_what_it_is() -> None:
    """Results that were published name it."""
    assert {name: find_protocol(name).sha256 for name in protocol_names()} == PUBLISHED


# the committed ones -------------------------------------------------------------------------------------------------------

PUBLISHED = {
    "openwebrl-deepshop": "a6b3f60c5ef2cc4cd9bd7e50f34dfceffdb1029c20c4f95d92272faebca7b2bf",
    "openwebrl-online-mind2web": "b2c24bb05c5fb6667178b5dd4ade12ebda02f8699fd69193d5c64e917e851551",
    "openwebrl-webvoyager": "4363bd0154fdd7f201eb36a5a2b6fd98ae43cdb011faf73c029986370f7f6533",
    "webgym-test": "bfeafa42a1ee53aab7c1d4754d0f441fca2bfe8df34e8f13b4783e910fc120e7",
}


@pytest.mark.parametrize("name", protocol_names())
def test_a_committed_protocol_is_whole_and_makes_a_configuration(name: str) -> None:
    said = find_protocol(name)
    assert (said.name, bool(said.about)) == (name, True)
    assert (PROTOCOLS / f"{name}.yaml").read_text().startswith("# ")
    # Whether its judge is there is known when it is asked for.
    values = said.configuration | pinned(said) | {"judge_config.judge": "environment_v1"}
    config = load_config("rollout_test", as_overrides(values))
    assert config.policy_config.temperature_of(evaluation=True) == said.sampling.temperature
    assert config.env_config.test_difficulty_max_steps == said.step_caps
    assert config.context_config.num_rounds + 1 == said.context.screenshots
    assert config.openai_config.model == said.judge.model


def test_openwebrl_as_published() -> None:
    judges = {
        "online-mind2web": ("agenttrek_v1", "o4-mini"),
        "webvoyager": ("webvoyager_v1", "gpt-4o"),
        "deepshop": ("deepshop_v1",),
    }
    recipe = load_config("openwebrl")
    for suite, judge in judges.items():
        said = find_protocol(f"openwebrl-{suite}")
        config = load_config("rollout_test", as_overrides(said.configuration | pinned(said)))
        assert (config.context_config, config.model_config) == (recipe.context_config, recipe.model_config)
        sampling = said.sampling
        assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.max_tokens) == (0.6, 0.95, 20, 4096)
        assert (said.steps, said.viewport.width, said.viewport.height, said.context.screenshots) == (30, 1280, 1000, 1)
        assert (said.judge.name, said.judge.model)[: len(judge)] == judge
        assert said.differs, "what is not reproduced is said"


def test_webgym_as_published() -> None:
    said, recipe = find_protocol("webgym-test"), load_config("webgym")
    config = load_config("webgym", as_overrides(said.configuration | pinned(said)))
    for group in ("policy_config", "context_config", "model_config", "judge_config", "openai_config", "browser_config"):
        assert getattr(config, group) == getattr(recipe, group)
    assert config.env_config.test_difficulty_max_steps == recipe.env_config.test_difficulty_max_steps


def test_every_key_of_a_protocol_is_documented() -> None:
    page = (ROOT / "docs" / "evaluation.md").read_text()
    assert [key for key in keys() if f"`{key}`" not in page] == []


# what else may have a say -------------------------------------------------------------------------------------------------


def test_what_a_protocol_says_cannot_be_overridden() -> None:
    assert set(PINS) <= set(known_keys())
    assert {pin.key for pin in PINS.values()} <= set(keys())
    require_free(["env_config.server_size=3", "bus_config.url=x", "openai_config.base_url=y", "policy_config.dtype=float32"])
    for key, pin in (
        ("policy_config.temperature", "sampling.temperature"),
        ("policy_config.eval_temperature", "sampling.temperature"),
        ("policy_config", "sampling.temperature"),
        ("env_config.test_difficulty_max_steps", "steps"),
        ("env_config.test_difficulty_max_steps.easy", "steps"),
        ("policy_config.max_model_len", "context.tokens"),
        ("openai_config.evaluation.model", "judge.model"),
        ("openai_config.evaluation", "judge.model"),
        ("algorithm_config", "context.tokens"),
        ("env_config.test_tasks", "tasks.file"),
        ("bus_config.rubrics", "judge.name"),
    ):
        with pytest.raises(ConfigurationError, match=f"{key} (is|holds) what the protocol says as {pin}: (leave|write)"):
            require_free([f"++{key}=1"] if "." in key else [f"{key}={{temperature: 1}}"])


# tasks ------------------------------------------------------------------------------------------------------------------


def task_file(folder: Path, *, count: int = 9, **more: object) -> Path:
    path = folder / "tasks.jsonl"
    lines = [
        {
            "task_id": f"t{index}",
            "task_name": "Find it",
            "domain": "Shopping" if index % 2 else "Travel",
            "subdomain": "x",
            "website": f"https://www.site{index % 3}.example/a",
            "difficulty": index,
            "evaluator_reference": "it is found",
            "definite_answer": None,
            "distribution": "ood" if index < 5 else "id",
            "split": "test" if index < 7 else "train",
            **more,
        }
        for index in range(count)
    ]
    path.write_text("\n\n".join(map(json.dumps, lines)) + "\n")
    return path


def chosen(folder: Path, **choice: Any) -> list[str]:
    return list(map(str, choose(task_file(folder), TaskChoice(file="tasks.jsonl", **choice)).tasks))


def test_tasks_are_chosen_by_what_their_lines_say(tmp_path: Path) -> None:
    assert len(chosen(tmp_path)) == 9
    assert chosen(tmp_path, difficulties=("easy",)) == ["t1", "t2", "t3"]
    assert chosen(tmp_path, difficulties=("medium", "hard"), domains=("Travel",)) == ["t4", "t6", "t8"]
    assert chosen(tmp_path, sites=("site1.example",)) == ["t1", "t4", "t7"]
    assert chosen(tmp_path, without_sites=("www.site1.example", "site0.example")) == ["t2", "t5", "t8"]
    assert chosen(tmp_path, distributions=("id",), splits=("test",)) == ["t5", "t6"]
    assert chosen(tmp_path, without_tasks=("t0",), first=2) == ["t1", "t2"]
    with pytest.raises(ConfigurationError, match="none of the 9 tasks"):
        chosen(tmp_path, domains=("News",))


def test_a_part_of_a_file_is_a_task_file_with_the_same_lines(tmp_path: Path) -> None:
    file = task_file(tmp_path, own_field="kept")
    whole, part = choose(file, TaskChoice(file="t")), choose(file, TaskChoice(file="t", first=2))
    assert (whole.content, whole.sha256) == (b"", hashlib.sha256(file.read_bytes()).hexdigest())
    assert choose(file, TaskChoice(file="t", first=9, splits=("test", "train"))).content == b"", "all of them are chosen"
    lines = part.content.splitlines()
    assert set(lines) <= set(file.read_bytes().splitlines())
    assert [json.loads(line)["own_field"] for line in lines] == ["kept", "kept"]


def test_a_file_is_read_once_and_held_no_more_than_it_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = task_file(tmp_path, count=300, own_field="x" * 10_000)
    lengths = list[int]()

    def reading(text: str) -> object:
        lengths.append(len(text))
        return decoded(text)

    monkeypatch.setattr(task_files, "decoded", reading)
    tracemalloc.start()
    number = len(choose(file, TaskChoice(file="t")).tasks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (number, len(lengths)) == (300, 300)
    assert peak < 1_000_000, "of 3 MB in the file"


def test_a_file_is_held_to_its_hash(tmp_path: Path) -> None:
    digest = hashlib.sha256(task_file(tmp_path).read_bytes()).hexdigest()
    assert len(chosen(tmp_path, sha256=digest)) == 9
    with pytest.raises(ConfigurationError, match=f"is not the protocol's task file: its sha256 is {digest}"):
        chosen(tmp_path, sha256="0" * 64)


def test_a_submission_needs_the_steps_that_people_took(tmp_path: Path) -> None:
    said = choose(task_file(tmp_path, reference_length=4), TaskChoice(file="t", first=2))
    assert reference_lengths(said) == {"t0": 4, "t1": 4}
    prepared = choose(task_file(tmp_path, metadata={"reference_length": 5}), TaskChoice(file="t", first=1))
    assert reference_lengths(prepared) == {"t0": 5}
    with pytest.raises(TaskFileError, match="does not say it of t0, t1, t2 and 6 more: write the data set's reference_length"):
        reference_lengths(choose(task_file(tmp_path), TaskChoice(file="t")))


# what is apart ------------------------------------------------------------------------------------------------------------


def test_without_a_verdict_nothing_is_a_failure() -> None:
    lenient = Apart(blocked=(), invalid=())
    assert [lenient.of(cause) for cause in ("blocked", "timed_out", "failed", "not_opened", "excluded")] == [None] * 5
    assert {lenient.of(cause) for cause in ("cancelled", "judge_error", "unjudged", "missing")} == {"invalid"}
    assert (Apart().of("blocked"), Apart().of("timed_out"), Apart().of("not_opened")) == ("blocked", "invalid", None)
    assert Protocol(name="x", tasks=TaskChoice(file="t"), judge=Judging(name="j")).apart == Apart()
