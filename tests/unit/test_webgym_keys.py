"""Every key of WebGym's reference, one by one: changing it changes what is done, or is refused with what to write instead."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ops.config.schema import build_config, known_keys
from ops.config.translation import put, translated
from ops.config.webgym_keys import SAME_AS, SPLIT, WITHOUT_EFFECT
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.messages import Split
from tests.support.observed import browsers, feeding, processes, prompts, training
from tests.support.runs.webgym_reference import GEMINI, REFERENCE

LOCAL = "http://127.0.0.1:8000/v1"
CAPS = {"easy": 2, "medium": 5, "hard": 8}
"""A difficulty of each class."""


@dataclass(frozen=True)
class Walk:
    key: str
    value: object
    observe: Callable[[Config], object]
    before: object
    after: object
    beside: tuple[tuple[str, object], ...] = ()
    """Further keys, in both configurations."""
    with_it: tuple[tuple[str, object], ...] = ()
    """Keys that the new value needs."""


def _question(question: str) -> tuple[Walk, ...]:
    key, asked = f"openai_config.{question}", training.asked
    model = "gemini-3-flash-preview" if question == "evaluation" else "gemini-2.5-flash-lite"
    return (
        Walk(f"{key}.model", "m", asked(question, "model"), model, "m"),
        Walk(
            f"{key}.openai_api_key_env_var",
            "MINE",
            asked(question, "key_env_var"),
            "GEMINI_API_KEY",
            "MINE",
            ((f"{key}.base_url", GEMINI),),
        ),
        Walk(f"{key}.base_url", LOCAL, asked(question, "base_url"), GEMINI, LOCAL),
    )


WALKS = (
    Walk("save_path", "{here}/other", processes.starts_in, "run", "other"),
    Walk("data_path", "{here}/b", feeding.fed(Split.TRAIN), ["a train.jsonl"], ["b train.jsonl"]),
    Walk("model_config.model_type", "qwen3-think", prompts.answer_shown_again, ("<think>a</think>b",), ("b",)),
    Walk("model_config.prompt_version", "complete", prompts.asks_for_memory, False, True),
    Walk("policy_config.base_model", "{here}/model-b", prompts.weights_loaded, "model-a", "model-b"),
    Walk("policy_config.checkpoint_path", "{here}/model-b", prompts.weights_loaded, "model-a", "model-b"),
    Walk("policy_config.max_new_tokens", 1000, prompts.prompt_room, 13312, 15384),
    Walk("policy_config.temperature", 0.5, prompts.sampling("temperature"), 1.0, 0.5),
    Walk("policy_config.top_p", 0.5, prompts.sampling("top_p"), 0.99, 0.5),
    Walk("policy_config.top_k", 7, prompts.sampling("top_k"), 2, 7),
    Walk("policy_config.min_p", 0.1, prompts.sampling("min_p"), 0.0, 0.1),
    Walk("context_config.interaction_mode", "set_of_marks", prompts.names_targets_by_number, False, True),
    Walk("env_config.operation_timeout", 7, browsers.operation_deadline, 120.0, 7.0),
    Walk("env_config.vllm_timeout", 7, prompts.endpoint_patience, 240.0, 7.0),
    Walk("env_config.evaluation_workers", 3, processes.judged_at_once, 16, 3),
    Walk("env_config.completion_threshold", 0.5, feeding.cancels_stragglers(ended=600, after_s=31), False, True),
    Walk("env_config.completion_grace_period", 5, feeding.cancels_stragglers(ended=1000, after_s=10), False, True),
    Walk("env_config.instance_lifetime_max", 2, browsers.browser_age, 3000.0, 120.0),
    Walk("env_config.task_timeout_minutes", 2, feeding.episode_time, 18000.0, 120.0),
    Walk("env_config.server_size", 3, processes.episodes_at_once, 5, 3),
    Walk("env_config.verbose", True, processes.logs_debug_events, False, True),
    Walk("env_config.use_rich_actree", True, browsers.tree_is_rich, False, True),
    Walk("env_config.max_retries", 0, processes.times_begun, 3, 1),
    *(
        Walk(f"env_config.http_pools.{pool}", 7, browsers.places(pool), REFERENCE[f"env_config.http_pools.{pool}"], 7)
        for pool in ("metadata", "navigate", "allocate", "release", "screenshot", "ac_tree", "page_metadata", "execute")
    ),
    Walk("env_config.max_vllm_sessions", 7, prompts.engine_sequences, 128, 7),
    Walk(SPLIT, "test", feeding.played_split, ["train"], ["eval"]),
    *(
        Walk(f"env_config.{name}_difficulty_max_steps.{each}", 99, feeding.step_cap(split, CAPS[each]), cap, 99)
        for name, split, caps in (("train", Split.TRAIN, (10, 20, 30)), ("test", Split.EVAL, (30, 50, 70)))
        for each, cap in zip(CAPS, caps, strict=True)
    ),
    Walk("env_config.train_tasks_rollout_size", 64, feeding.admitted_at_first, 1024, 64),
    Walk("env_config.test_tasks_rollout_size", 5, feeding.evaluated, 12, 5),
    Walk("env_config.test_tasks_repeat_times", 3, feeding.evaluated, 12, 36),
    Walk(
        "env_config.train_tasks_sampler",
        "ratio",
        feeding.sampler,
        "UniformSampler",
        "RatioSampler",
        (("env_config.difficulty_ratio", {"all": {"range": [1, 9], "weight": 1}}),),
    ),
    Walk("env_config.train_tasks", "other.jsonl", feeding.fed(Split.TRAIN), ["a train.jsonl"], ["a other.jsonl"]),
    Walk(
        "env_config.test_tasks",
        "other.jsonl",
        feeding.fed(Split.EVAL),
        ["a test.jsonl"],
        ["a other.jsonl"],
        (("feeder_config.evaluate_last", True),),
    ),
    Walk("openai_config.model", "m", training.asked("evaluation", "model"), "gemini-3-flash-preview", "m"),
    Walk(
        "openai_config.openai_api_key_env_var",
        "OPENAI_API_KEY",
        training.asked("evaluation", "key_env_var"),
        "GEMINI_API_KEY",
        "OPENAI_API_KEY",
    ),
    Walk("openai_config.base_url", LOCAL, training.asked("evaluation", "base_url"), GEMINI, LOCAL),
    *_question("keypoint_detection"),
    *_question("blocking_detection"),
    *_question("evaluation"),
    Walk("log_config.run_name", "mine", training.tracked_as("name"), "millrace", "mine"),
    Walk("log_config.wandb_key_env_var", "OTHER_KEY", training.tracked_as("api_key"), "key-a", "key-b"),
    Walk("log_config.entity_name", "team", training.tracked_as("entity"), None, "team"),
    Walk("algorithm_config.positive_samples_to_train", 7, training.steps_drawn, 1800, 7),
    Walk("algorithm_config.recency_bias_power", 0, training.newer_share, 0.9, 0.5),
    Walk("algorithm_config.cutoff_len", 8192, prompts.prompt_room, 13312, 5120),
    Walk(
        "algorithm_config.per_device_train_batch_size",
        5,
        training.deepspeed(lambda given: given["train_micro_batch_size_per_gpu"]),
        3,
        5,
    ),
    Walk("algorithm_config.gradient_accumulation_steps", 5, training.engine_says(lambda engine: engine.step_size), 12, 15),
    Walk("algorithm_config.learning_rate", 1e-3, training.engine_says(lambda engine: engine.train(())), 1e-6, 1e-3),
    Walk("algorithm_config.num_train_epochs", 3, training.optimizer_steps, 2, 3),
    Walk("algorithm_config.warmup_steps", 10, training.rate_after(14), 0.5, 1.0),
    Walk(
        "algorithm_config.lr_scheduler_type",
        "linear",
        training.rate_after(65),
        1.0,
        0.5,
        with_it=(("algorithm_config.lr_scheduler_steps", 100),),
    ),
    Walk("algorithm_config.val_split_ratio", 0, training.held_out, True, False),
    Walk(
        "algorithm_config.deepspeed_config_filename",
        "ds_config_h100_zero3.json",
        training.deepspeed(lambda given: given["zero_optimization"]["stage"]),
        1,
        3,
    ),
    Walk("algorithm_config.report_to", ["tensorboard"], training.trackers, ["wandb"], ["tensorboard"]),
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Task files in two folders, whose instructions say where they stand, and two models."""
    folder = tmp_path_factory.mktemp("run")
    for place in ("a", "b"):
        (folder / place).mkdir()
        (folder / f"model-{place}").mkdir()
        (folder / f"model-{place}" / "config.json").write_text('{"text_config": {}}')
        for name in ("train.jsonl", "test.jsonl", "other.jsonl"):
            task = {"task_id": 1, "task_name": f"{place} {name}", "domain": "d", "subdomain": "s", "website": "example.org"}
            more = {"difficulty": 1, "evaluator_reference": "it is done", "definite_answer": None}
            (folder / place / name).write_text(json.dumps(task | more) + "\n")
    return folder


def config_of(here: Path, *pairs: tuple[str, object]) -> Config:
    """A tree as a person writes it, on top of what WebGym's own files say."""
    tree: dict[str, object] = {}
    written = (
        ("save_path", f"{here}/run"),
        ("data_path", f"{here}/a"),
        ("policy_config.base_model", f"{here}/model-a"),
        ("algorithm_config.report_to", "wandb"),
        ("algorithm_config.val_split_ratio", 0.05),
        *pairs,
    )
    for key, value in written:
        groups, _, name = key.rpartition(".")
        inner = tree
        for group in filter(None, groups.split(".")):
            inner = inner.setdefault(group, {})  # type: ignore[assignment]
        inner[name] = value.replace("{here}", str(here)) if isinstance(value, str) else value
    return build_config(translated(tree).tree)


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.key)
def test_changing_it_changes_what_is_done(walk: Walk, here: Path) -> None:
    assert walk.observe(config_of(here, *walk.beside)) == walk.before
    assert walk.observe(config_of(here, *walk.beside, *walk.with_it, (walk.key, walk.value))) == walk.after
    assert walk.before != walk.after


@pytest.mark.parametrize("key", WITHOUT_EFFECT)
def test_what_has_no_effect_is_said_or_refused_with_what_to_write(key: str) -> None:
    entry = WITHOUT_EFFECT[key]
    for published in entry.published:
        tree: dict[str, object] = {}
        put(tree, key, published)
        found = translated(tree)
        assert [note.key for note in found.notes] == [key]
        assert entry.why in found.notes[0].sentence
        assert build_config(found.tree) == Config()
    for mine in ("mine", 12345, not entry.published[0] if isinstance(entry.published[0], bool) else 1.5):
        changed: dict[str, object] = {}
        put(changed, key, mine)
        with pytest.raises(ConfigurationError) as refused:
            translated(changed)
        assert str(refused.value).startswith(f"{key} is ")
        assert str(refused.value).endswith(entry.instead)


def test_no_key_of_the_reference_is_left_out() -> None:
    walked = [walk.key for walk in WALKS]
    assert len(walked) == len(set(walked))
    assert set(walked) | set(WITHOUT_EFFECT) >= set(REFERENCE)
    assert set(walked) <= set(REFERENCE)


def test_what_stands_instead_exists() -> None:
    for entry in WITHOUT_EFFECT.values():
        named = [word.strip(",.:;") for word in entry.instead.split() if "_config." in word]
        assert named or "save_path" in entry.instead or "leave it out" in entry.instead
        for key in named:
            assert key in known_keys()
    assert set(SAME_AS.values()) <= set(known_keys())
    assert not (set(SAME_AS) | set(WITHOUT_EFFECT) | {SPLIT}) & set(known_keys())
