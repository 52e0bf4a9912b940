"""`millrace config import`: every key of another program's file is answered, and the configuration that it becomes loads."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from ops.cli import main
from ops.commands.config_import import PROGRAMS as OPTIONS
from ops.config.agreement import require_agreement, require_known_parts
from ops.config.elsewhere.answer import Answer, Answers
from ops.config.elsewhere.answering import answers
from ops.config.elsewhere.fitting import merged, put
from ops.config.elsewhere.programs import PROGRAMS, said_otherwise
from ops.config.elsewhere.reading import Read, read_file
from ops.config.elsewhere.row import DEEPSPEED, Kind, Program, Row
from ops.config.elsewhere.written import Depends, Open, Written
from ops.config.key_docs import key_docs
from ops.config.loading import load_config, written
from ops.config.resolved import resolve
from ops.config.schema import build_config
from ops.config.translation import translated
from schemas.errors import ConfigurationError
from tests.support.runs.webgym_reference import REFERENCE
from trainer.engine.deepspeed_config import read_deepspeed_config

FIXTURES = Path(__file__).parents[1] / "fixtures"
FILES = [
    *(
        ("webgym", f"webgym_tree/{name}.yaml")
        for name in ("default", "rollout", "rollout_train", "rollout_test", "update_online")
    ),
    ("rlinf", "elsewhere/rlinf_math.yaml"),
    ("rlinf", "elsewhere/config/rlinf_embodied.yaml"),
    ("rlinf", "elsewhere/config/env/simulator.yaml"),
    ("agentfly", "elsewhere/agentfly_webshop.sh"),
    ("vagen", "elsewhere/vagen_service.sh"),
    ("vagen", "elsewhere/vagen_environments.yaml"),
    ("verl", "elsewhere/verl_grpo.sh"),
]
VERSIONS = [each for program in PROGRAMS.values() for each in (program, program.older) if each]
ROWS = [(program, row) for program in VERSIONS for row in program.rows]


def of_keys(option: str, **keys: object) -> Answers:
    """Of keys whose dots are written as two underscores."""
    return answers(PROGRAMS[option], Read({key.replace("__", "."): value for key, value in keys.items()}))


def require_loads(program: Program, found: Answers) -> None:
    """Raises `ConfigurationError` where what would be written does not load."""
    config = build_config(translated(merged(written(program.recipe), found.all)).tree)
    require_agreement(config)
    require_known_parts(config)


def answer_of(found: Answers, key: str) -> Answer:
    return next(answer for answer in found.all if answer.key == key)


def caps_of(found: Answers) -> object:
    return found.values.get("env_config.train_difficulty_max_steps.hard")


def imported(file: Path, option: str, out: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["config", "import", str(file), "--from", option, "--out", str(out), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("option", "name"), FILES)
def test_every_key_of_the_documents_examples_is_answered_and_what_is_written_loads(
    option: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mine.yaml"
    code, told = imported(FIXTURES / name, option, out, capsys)
    assert (code, told["unknown"]) == (0, [])
    asked = [answer["key"] for answer in told["answers"] if answer["key"] and not answer["default"]]
    assert sorted(asked) == sorted(read_file(FIXTURES / name).values.keys() | read_file(FIXTURES / name).removed)
    assert yaml.safe_load(out.read_text())["defaults"] == [PROGRAMS[option].recipe, "_self_"]
    values = {key: value.value for key, value in resolve(out).values.items()}
    for answer in told["answers"]:
        for key, value in answer["ours"].items():
            if key in values:
                assert values[key] == value


def test_agentflys_example_becomes_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "webshop.yaml"
    _, told = imported(FIXTURES / "elsewhere/agentfly_webshop.sh", "agentfly", out, capsys)
    config = load_config(out)
    assert config.policy_config.base_model == "Qwen/Qwen2.5-3B-Instruct"
    assert (config.policy_config.top_k, config.policy_config.top_p, config.policy_config.eval_temperature) == (-1, 1.0, 0.0)
    assert (config.objective_config.group_size, config.env_config.train_tasks_rollout_size) == (8, 512)
    assert (config.objective_config.kl_loss_coef, config.objective_config.kl_reward_coef) == (0.001, 0.0)
    assert config.objective_config.loss_type == "clipped"
    assert config.env_config.train_difficulty_max_steps.hard == 15
    # A hundredth of 200 iterations of one optimizer step, each of which takes whole batches of at most 15 steps an episode.
    algorithm = config.algorithm_config
    assert (algorithm.warmup_steps, algorithm.gradient_accumulation_steps * 8) == (2, 64 * 8 * 15)
    assert config.log_config.run_name == "webshop_Qwen2.5-3B-Instruct_grpo_test"
    assert config.feeder_config.mode == "sync"
    deepspeed = read_deepspeed_config(Path(algorithm.deepspeed_config_filename))
    assert (deepspeed.stage, deepspeed.checkpoints_activations, deepspeed.dtype) == (3, False, "bfloat16")
    assert told["written"] == [str(out), algorithm.deepspeed_config_filename]
    prompt = next(answer for answer in told["answers"] if answer["key"].endswith("system_prompt"))
    assert prompt["value"].startswith("You buy one product.\nSearch first; say `choose[Buy]`")


def test_rlinfs_precision_and_megatron_become_a_deepspeed_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "math.yaml"
    imported(FIXTURES / "elsewhere/rlinf_math.yaml", "rlinf", out, capsys)
    config = load_config(out)
    deepspeed = read_deepspeed_config(tmp_path / "math_deepspeed.json")
    assert (deepspeed.dtype, config.policy_config.dtype) == ("float16", "float16")
    assert deepspeed.settings["zero_optimization"]["offload_param"]["device"] == "cpu"
    assert config.policy_config.max_new_tokens == 2048 - 1024
    assert config.save_path == "../results/grpo-1.5b"
    assert (config.objective_config.clip_ratio_c, config.policy_config.top_k) == (0.0, -1)


def test_vagens_trajectories_are_the_group_and_windows_are_rounds() -> None:
    found = answers(PROGRAMS["vagen"], read_file(FIXTURES / "elsewhere/vagen_service.sh"))
    assert found.values["objective_config.group_size"] == 8
    assert found.values["context_config.num_rounds"] == 3
    assert found.values["objective_config.kl_reward_coef"] == 0.001
    assert answer_of(found, "actor_rollout_ref.rollout.n").kind is Kind.NOTHING


def test_verls_script_is_read_with_its_variables_arrays_signs_and_comments() -> None:
    read = read_file(FIXTURES / "elsewhere/verl_grpo.sh")
    assert read.values["data.train_files"] == ["data/a.parquet", "data/b.parquet"]
    assert read.values["data.max_prompt_length"] == 2048
    assert read.values["trainer.logger"] == ["console", "tensorboard"]
    assert read.values["trainer.experiment_name"] == "a name with spaces"
    assert read.values["actor_rollout_ref.model.path"] == "Qwen/Qwen2.5-VL-7B-Instruct"
    assert read.removed == {"trainer.default_hdfs_dir"}
    found = answers(PROGRAMS["verl"], read)
    assert found.values["policy_config.vllm_args.mm_processor_cache_gb"] == 4
    assert found.values["env_config.test_tasks_repeat_times"] == 2
    assert found.values["algorithm_config.warmup_steps"] == 2 * 2
    home = answer_of(found, "trainer.default_local_dir")
    assert (home.kind, home.ours) == (Kind.INSTEAD, {})
    assert "write save_path: what $HOME/checkpoints stands for" in home.words


def test_what_depends_on_an_open_value_is_not_written() -> None:
    found = of_keys(
        "verl",
        actor_rollout_ref__rollout__n=Open("$N"),
        data__train_batch_size=64,
        actor_rollout_ref__actor__ppo_mini_batch_size=64,
        trainer__n_gpus_per_node=Open("$GPUS"),
        algorithm__use_kl_in_reward=True,
        algorithm__kl_ctrl__kl_coef=Open("$KL"),
    )
    for key, on in (
        ("data.train_batch_size", "actor_rollout_ref.rollout.n, which is $N there"),
        ("actor_rollout_ref.actor.ppo_mini_batch_size", "$N"),
        ("algorithm.use_kl_in_reward", "algorithm.kl_ctrl.kl_coef, which is $KL there"),
    ):
        answer = answer_of(found, key)
        assert (answer.kind, answer.ours, on in answer.words) == (Kind.INSTEAD, {}, True)
    assert not found.values.keys() & {
        "env_config.train_tasks_rollout_size",
        "algorithm_config.gradient_accumulation_steps",
        "objective_config.kl_reward_coef",
    }
    default = answer_of(of_keys("verl", actor_rollout_ref__rollout__n=Open("$N")), "data.train_batch_size")
    assert (default.kind, default.is_default) == (Kind.INSTEAD, True)


def test_an_unknown_key_is_said_with_the_nearest_and_the_rest_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "run.sh", tmp_path / "mine.yaml"
    file.write_text("python x data.trian_batch_size=64 actor_rollout_ref.actor.optim.lr=3e-6\n")
    code, told = imported(file, "verl", out, capsys)
    assert (code, told["unknown"]) == (1, ["data.trian_batch_size"])
    unknown = next(answer for answer in told["answers"] if answer["kind"] == "unknown")
    assert unknown["words"].endswith("the nearest is data.train_batch_size")
    assert load_config(out).algorithm_config.learning_rate == 3e-6


def test_the_file_of_another_program_is_told_by_its_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(FIXTURES / "elsewhere/rlinf_math.yaml")
    assert main(["config", "import", file, "--from", "verl", "--out", str(tmp_path / "mine.yaml")]) == 1
    assert "More of these keys are RLinf's: --from rlinf may be meant." in " ".join(capsys.readouterr().out.split())


def test_what_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.yaml"
    out.write_text("mine")
    assert main(["config", "import", str(FIXTURES / "elsewhere/verl_grpo.sh"), "--from", "verl", "--out", str(out)]) == 78
    assert "mine.yaml exists: write another name for --out" in " ".join(capsys.readouterr().err.split())
    assert out.read_text() == "mine"
    assert main(["config", "import", str(FIXTURES / "elsewhere/verl_grpo.sh"), "--from", "verl", "--out", "mine.json"]) == 78
    assert "write a name that ends in .yaml" in " ".join(capsys.readouterr().err.split())


def test_tables_are_lines_where_no_terminal_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(FIXTURES / "elsewhere/vagen_service.sh")
    assert main(["config", "import", file, "--from", "vagen", "--out", str(tmp_path / "mine.yaml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    size = "mapped: data.train_batch_size = 16 -> env_config.train_tasks_rollout_size = 128 (16 prompts of 8 episodes each)"
    assert size in lines
    assert lines[-1].startswith("58 keys of VAGEN's: ")


def test_what_a_person_has_to_say_is_shown_whether_it_is_written_or_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "run.sh", tmp_path / "mine.yaml"
    file.write_text('python x actor_rollout_ref.rollout.n=$N "$@"\n')
    assert main(["config", "import", str(file), "--from", "verl", "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    depends = "it depends on actor_rollout_ref.rollout.n, which is $N there"
    assert (
        f"instead: data.train_batch_size = 1024 (its default: write env_config.train_tasks_rollout_size: {depends})" in lines
    )
    assert any(line.startswith("instead: $@ (whoever starts the script knows") for line in lines)
    load_config(out)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.yaml", b"a: [1", "is not YAML"),
        ("a.yaml", b"[" * 20_000, "is "),
        ("a.yaml", b"- 1\n- 2\n", "holds no keys"),
        ("a.yaml", b"".join(b" " * depth + b"k:\n" for depth in range(300)), "nested more deeply"),
        ("a.yaml", b"a: &a [x]\n" + b"".join(b"k%d: {a: 1}\n" % n for n in range(20_001)), "more than 20,000 values"),
        ("a.yaml", b"a: 2001-99-99\n", "nested or numbered"),
        ("a.sh", b"\x7fELF\x00\x01", "is no text"),
        ("a.sh", b"\xff\xfe\xfa", "is no text"),
        ("a.sh", b"echo hello\n", "holds no settings"),
        ("a.sh", b"", "holds no settings"),
        ("a.sh", b"#" * (2 * 2**20 + 1), "has more than 2 MiB"),
        ("missing", None, "cannot be read (No such file or directory)"),
        ("folder", "", "cannot be read (Is a directory)"),
    ],
)
def test_what_is_no_configuration_gets_one_sentence(
    name: str, content: bytes | str | None, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif content is not None:
        file.mkdir()
    assert main(["config", "import", str(file), "--from", "rlinf", "--out", str(tmp_path / "out.yaml")]) == 78
    told = capsys.readouterr()
    assert sentence in " ".join(told.err.split())
    assert "Traceback" not in told.err + told.out
    assert not (tmp_path / "out.yaml").exists()


def test_aliases_that_multiply_end_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "bomb.yaml"
    lines = ["a0: &a0 {x: 1, y: 2}"]
    lines += [f"a{n}: &a{n} {{x: *a{n - 1}, y: *a{n - 1}}}" for n in range(1, 40)]
    file.write_text("\n".join(lines))
    with pytest.raises(ConfigurationError, match="more than 20,000 values"):
        read_file(file)


@settings(max_examples=60)
@given(
    st.sampled_from(ROWS),
    st.none()
    | st.booleans()
    | st.integers(-3, 10**12)
    | st.floats()
    | st.text(max_size=8)
    | st.lists(st.integers(0, 3), max_size=3)
    | st.just({}),
)
def test_any_value_of_a_known_key_has_an_answer_that_loads(pair: tuple[Any, Row], value: object) -> None:
    program, row = pair
    key = row.theirs.replace("**.", "a.").replace("*", "some")
    found = answers(program, Read({key: value}))
    answer = answer_of(found, key)
    assert answer.kind is not Kind.UNKNOWN
    assert answer.words or answer.ours
    require_loads(program, found)


def test_what_is_mapped_leads_to_keys_of_ours() -> None:
    for program, row in ROWS:
        for key in row.ours:
            known = key in key_docs()
            assert known, f"{program.name}: {row.theirs} -> {key}"
        assert bool(row.ours) == (row.kind is Kind.OURS), row.theirs
        assert row.kind is not Kind.SAME or not row.usual or row.otherwise, row.theirs
        assert row.words or row.ours, row.theirs
        assert (row.ours == (DEEPSPEED,)) >= bool(row.setting)


def test_tables_say_each_key_once_and_none_of_ours() -> None:
    for program in VERSIONS:
        names = [row.theirs for row in program.rows]
        assert len(names) == len(set(names)), {name for name in names if names.count(name) > 1}
        if program.option != "webgym":
            assert not {row.theirs for row in program.rows} & set(key_docs())


def test_defaults_of_a_program_alone_load_and_keys_name_real_ones_in_words() -> None:
    for program in VERSIONS:
        require_loads(program, answers(program, Read({})))
    for program, row in ROWS:
        for word in f"{row.words} {row.otherwise}".replace("`", " ").split():
            key = word.strip("(),.:;").partition("=")[0]
            if key.partition(".")[0].endswith("_config") and "." in key:
                assert key in key_docs(), f"{program.name}: {row.theirs} names {key}"


def test_webgyms_reference_is_answered_key_by_key() -> None:
    rows = {row.theirs for row in PROGRAMS["webgym"].rows}
    assert set(REFERENCE) <= rows
    found = answers(PROGRAMS["webgym"], Read({"env_config.wait_timeout": 9, "env_config.split": "test"}))
    wait = answer_of(found, "env_config.wait_timeout")
    assert (wait.kind, wait.words.startswith("write env_config.task_timeout_minutes")) == (Kind.INSTEAD, True)
    assert found.values == {"feeder_config.mode": "eval"}


def test_the_command_offers_every_program() -> None:
    assert sorted(OPTIONS) == sorted(PROGRAMS)


@pytest.mark.parametrize(
    ("keys", "ours"),
    [
        ({"algorithm__adv_estimator": "remax", "data__train_batch_size": 10, "actor_rollout_ref__rollout__n": 4},
         {"env_config.train_tasks_rollout_size": 50}),
        ({"actor_rollout_ref__actor__policy_loss__loss_mode": "gspo"}, {"objective_config.loss_type": "gspo"}),
        ({"algorithm__rollout_correction__rollout_is": "sequence"},
         {"objective_config.loss_type": "truncated", "objective_config.importance_weight_level": "sequence"}),
        ({"algorithm__rollout_correction__rollout_rs": "seq_mean_k3",
          "algorithm__rollout_correction__rollout_rs_threshold": 0.01},
         {"objective_config.rejection_level": "sequence-mean", "objective_config.rejection_kind": "k3",
          "objective_config.rejection_high": 0.01}),
        ({"algorithm__use_kl_in_reward": True, "algorithm__kl_ctrl__kl_coef": 0.02},
         {"objective_config.kl_reward_coef": 0.02}),
        ({"actor_rollout_ref__actor__clip_ratio": 0.3, "actor_rollout_ref__actor__clip_ratio_high": 0.4},
         {"objective_config.clip_ratio_low": 0.3, "objective_config.clip_ratio_high": 0.4}),
        ({"actor_rollout_ref__actor__optim__lr_scheduler_type": "cosine", "trainer__total_training_steps": 50,
          "data__train_batch_size": 512, "actor_rollout_ref__actor__ppo_mini_batch_size": 128},
         {"algorithm_config.lr_scheduler_type": "cosine", "algorithm_config.lr_scheduler_steps": 200}),
        ({"actor_rollout_ref__actor__use_dynamic_bsz": True, "actor_rollout_ref__actor__ppo_max_token_len_per_gpu": 24000},
         {"algorithm_config.max_tokens_per_micro_batch": 24000}),
        ({"reward_model__reward_kwargs__overlong_buffer_cfg__enable": True,
          "reward_model__reward_kwargs__overlong_buffer_cfg__len": 256}, {"objective_config.overlong_buffer_len": 256}),
        ({"actor_rollout_ref__rollout__val_kwargs__do_sample": True,
          "actor_rollout_ref__rollout__val_kwargs__temperature": 0.6},
         {"policy_config.eval_temperature": 0.6}),
        ({"trainer__val_only": True}, {"feeder_config.mode": "eval"}),
        ({"actor_rollout_ref__model__lora_rank": 64}, {"trainer_config.lora.alpha": 16}),
        ({"actor_rollout_ref__model__lora_rank": 0}, {"trainer_config.lora.alpha": None}),
        ({"algorithm__filter_groups__enable": True, "actor_rollout_ref__rollout__n": 8, "algorithm__adv_estimator": "grpo"},
         {"objective_config.max_refill": 1e6}),
    ],
)  # fmt: skip
def test_verls_values_are_converted_where_they_mean_something_else(keys: dict[str, object], ours: dict[str, object]) -> None:
    found = of_keys("verl", **keys).values
    assert {key: found.get(key) for key in ours} == ours


@pytest.mark.parametrize(
    ("keys", "ours"),
    [
        ({"actor__optim__critic_warmup_steps": 25, "env__train__total_num_envs": 64, "env__train__max_episode_steps": 80,
          "actor__global_batch_size": 320, "runner__task_type": "embodied", "algorithm__adv_type": "gae"},
         {"objective_config.critic.warmup_iterations": 2}),
        ({"algorithm__critic_warmup_steps": 25, "algorithm__adv_type": "gae"},
         {"objective_config.critic.warmup_iterations": 25}),
        ({"algorithm__staleness_threshold": 2, "runner__only_eval": False},
         {"feeder_config.mode": "async", "feeder_config.max_staleness": 2}),
        ({"runner__only_eval": True}, {"feeder_config.mode": "eval"}),
        ({"algorithm__reinpp_kl_beta": 0.1, "algorithm__kl_penalty_type": "k2", "algorithm__kl_penalty": "abs",
          "algorithm__adv_type": "reinpp", "algorithm__kl_beta": 0.0},
         {"objective_config.kl_reward_type": "mse", "objective_config.kl_loss_type": None}),
        ({"algorithm__kl_beta": 0.1, "algorithm__kl_penalty_type": "k3+"},
         {"objective_config.kl_loss_type": "low_var_kl+", "objective_config.kl_reward_type": None}),
        ({"actor__model__is_lora": True, "actor__model__lora_rank": 8},
         {"trainer_config.lora.rank": 8, "trainer_config.lora.alpha": 8}),
        ({"runner__task_type": "reasoning"},
         {"objective_config.clip_ratio_c": 3.0, "env_config.train_difficulty_max_steps.hard": 1}),
        ({"runner__task_type": "embodied"},
         {"objective_config.clip_ratio_c": 0.0, "env_config.train_difficulty_max_steps.hard": None}),
        ({"runner__task_type": "embodied", "algorithm__staleness_threshold": 1}, {"objective_config.clip_ratio_c": 3.0}),
    ],
)  # fmt: skip
def test_rlinfs_values_are_converted_where_they_mean_something_else(keys: dict[str, object], ours: dict[str, object]) -> None:
    found = of_keys("rlinf", **keys).values
    assert {key: found.get(key) for key in ours} == ours


@pytest.mark.parametrize(
    ("bounds", "kind"),
    [((0.1, 0.9), Kind.SAME), ((0.125, 0.875), Kind.SAME), ((0.3, 0.7), Kind.INSTEAD), ((-1.0, 1.0), Kind.INSTEAD)],
)
def test_rlinfs_bounds_of_mean_rewards_are_only_those_of_equal_ones(bounds: tuple[float, float], kind: Kind) -> None:
    lower, upper = bounds
    keys = {"algorithm__rewards_lower_bound": lower, "algorithm__rewards_upper_bound": upper, "algorithm__group_size": 8}
    found = of_keys("rlinf", **keys, algorithm__filter_rewards=True)
    assert {answer_of(found, f"algorithm.rewards_{side}_bound").kind for side in ("lower", "upper")} == {kind}
    assert answer_of(of_keys("rlinf", **keys), "algorithm.rewards_lower_bound").kind is Kind.NOTHING


@pytest.mark.parametrize(
    ("keys", "caps", "steps", "answer"),
    [
        ({}, 1, 64, 700),
        ({"actor_rollout_ref__rollout__multi_turn__max_assistant_turns": 5}, 1, 64, 700),
        ({"actor_rollout_ref__rollout__multi_turn__enable": True,
          "actor_rollout_ref__rollout__multi_turn__max_assistant_turns": 5}, 5, 320, None),
        ({"actor_rollout_ref__rollout__multi_turn__enable": True}, None, 64 * 30, None),
    ],
)  # fmt: skip
def test_steps_are_counted_by_the_caps_that_are_written(
    keys: dict[str, object], caps: int | None, steps: int, answer: int | None
) -> None:
    batch = {"actor_rollout_ref__actor__ppo_mini_batch_size": 64, "actor_rollout_ref__actor__ppo_micro_batch_size_per_gpu": 1}
    found = of_keys("verl", **keys, **batch, data__max_response_length=700)
    assert found.values.get("env_config.train_difficulty_max_steps.hard") == caps
    assert found.values["algorithm_config.gradient_accumulation_steps"] == steps
    assert found.values.get("policy_config.max_new_tokens") == answer
    assert (answer_of(found, "data.max_response_length").kind is Kind.INSTEAD) == (answer is None)


def test_vagens_defaults_are_those_of_the_version_whose_keys_are_written() -> None:
    today = of_keys("vagen", algorithm__use_kl_in_reward=False, algorithm__kl_ctrl__kl_coef=0.01)
    assert "context_config.num_rounds" not in today.values
    assert (today.values["objective_config.clip_ratio_c"], today.values["objective_config.kl_reward_coef"]) == (3.0, 0.0)
    assert answer_of(today, "algorithm.kl_ctrl.kl_coef").kind is Kind.NOTHING
    of_2025 = of_keys("vagen", rollout_manager__n_trajectory=4, data__max_response_length=300).values
    assert (of_2025["context_config.num_rounds"], of_2025["env_config.train_difficulty_max_steps.easy"]) == (5, 5)
    assert (of_2025["objective_config.kl_reward_coef"], of_2025["policy_config.max_new_tokens"]) == (0.001, 300)
    assert of_2025["env_config.train_tasks_rollout_size"] == 4 * 1024
    assert (today.values["env_config.train_tasks_rollout_size"], caps_of(today)) == (128, None)
    assert (caps_of(of_keys("agentfly")), caps_of(of_keys("agentfly", agent__max_turns=3))) == (None, 3)


def test_a_value_that_cannot_stand_beside_the_others_is_left_out_and_said() -> None:
    found = of_keys("verl", algorithm__adv_estimator="grpo", actor_rollout_ref__rollout__n=8, algorithm__lam=0.95)
    lam = answer_of(found, "algorithm.lam")
    assert (lam.kind, lam.ours) == (Kind.INSTEAD, {})
    assert "objective_config.lam is 0.95, and has no effect where adv_estimator is grpo" in lam.words
    assert found.values["objective_config.group_size"] == 8


def test_of_two_keys_that_say_the_same_the_first_of_the_table_counts() -> None:
    found = of_keys("agentfly", agent__init_config__model_name_or_path="a", actor_rollout_ref__model__path="b")
    other = answer_of(found, "actor_rollout_ref.model.path")
    assert (found.values["policy_config.base_model"], other.kind) == ("a", Kind.NOTHING)
    assert other.words == "agent.init_config.model_name_or_path says it otherwise, and counts"


def test_files_are_composed_as_hydra_composes_them(tmp_path: Path) -> None:
    files = {
        "main.yaml": "defaults:\n- part@a.b: one\n- part/two\n- _self_\n- late@a.late\n- optional none: x\n"
        "a: {own: main, b: {x: main}, late: {y: main}}\n",
        "part/one.yaml": "defaults: [../other@deep: some, base, _self_]\nx: one\nz: one\n",
        "part/base.yaml": "z: base\nw: base\n",
        "part/two.yaml": "defaults:\n- _self_\n- /other@there: some\nv: two\nthere: {s: two}\n",
        "other/some.yaml": "s: some\n",
        "late.yaml": "y: late\n",
        "globe.yaml": "# What it is.\n# @package _global_\ng: 1\n",
    }
    files["main.yaml"] = files["main.yaml"].replace("- _self_", "- globe\n- _self_", 1)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    values = read_file(tmp_path / "main.yaml").values
    assert values.pop("defaults") == ["none/x"]
    with initialize_config_dir(str(tmp_path), version_base=None):
        composed = OmegaConf.to_container(compose("main"))
    tree: dict[str, object] = {}
    for key, value in values.items():
        put(tree, key, value)
    assert tree == composed


def test_a_file_beside_it_is_not_read_where_it_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "main.yaml").write_text("defaults: [part]\na: 1\n")
    (tmp_path / "part.yaml").write_text("b: 1\n#" + "x" * 2 * 2**20)
    assert read_file(tmp_path / "main.yaml").values == {"a": 1, "defaults": ["part"]}


def test_references_are_followed_and_those_in_a_circle_stay_open(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        "runner: {a: '${runner.b}', b: '${.a}', n: '${subtract:${runner.m}, 2}', m: 5, t: '${.m}-${.n}'}\n"
        "e: '${oc.env:HOME}'\n"
        "x: '${oc.select:nowhere,7}'\ny: '${not:${z}}'\nz: True\n"
    )
    values = read_file(file).values
    assert (values["runner.n"], values["runner.t"], values["x"], values["y"]) == (3, "5-3", 7, False)
    assert (values["runner.a"], values["e"]) == (Open("${runner.b}"), Open("${oc.env:HOME}"))


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("agent.num_chains", "agent.num_chains is a key of AgentFly: write objective_config.group_size here"),
        ("actor.training_backend", "is a key of RLinf: write algorithm_config.deepspeed_config_filename here"),
        ("trainer.nnodes", "is a key of verl, AgentFly and VAGEN: leave it out: every worker"),
        ("custom_reward_function.path", "write ./file.py:name for judge_config.judge"),
        ("env_config.train_tasks", ""),
        ("nowhere.at.all", ""),
    ],
)
def test_whoever_writes_another_programs_key_is_told_ours(key: str, sentence: str) -> None:
    assert (sentence in said_otherwise(key)) if sentence else said_otherwise(key) == ""


def test_readings_never_see_a_default_before_what_is_written() -> None:
    said = Written({"a": 1, "b": None, "d": Open("$D")}, {"a": 2, "b": 3, "d": 4})
    assert (said.number("b", "a"), said.number("b"), said.number("c")) == (1, 3, None)
    assert said.number("a", "d") == 1
    with pytest.raises(Depends, match=r"it depends on d, which is \$D there"):
        said.number("d", "a")
