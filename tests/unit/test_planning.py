"""What a run is said to need: parameters of real shapes, memory by ZeRO's arithmetic, and settings with which it would fit."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from transformers import AutoConfig, InternVLConfig, Qwen3_5Config, Qwen3VLMoeConfig

from ops.cli import main
from ops.config.loading import load_config
from ops.gpu_check.random_model import SHAPES, describe_model
from ops.machine.placement import Wanted, shares_of
from ops.planning.gpus import GIB, Gpu, gpu_named, own_gpu
from ops.planning.memory import Serving, Training, cached_tokens, rank_gpu, sequences_at_once, serving_gpu, version_disk
from ops.planning.model_size import ModelSize, model_size
from ops.planning.plan import Machine, Plan, planned
from ops.planning.problems import problems
from ops.planning.rates import Rates, Workload, forward_flops, rates, read_parameters, screenshot_flops
from schemas.errors import ConfigurationError
from trainer.engine.throughput import ModelCost


@pytest.fixture(scope="module")
def sizes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModelSize]:
    folder = tmp_path_factory.mktemp("models")
    return {name: model_size(describe_model(folder / name, name)) for name in SHAPES}


def plan(
    size: ModelSize, gpu: str, num_gpus: int, *overrides: str, recipe: str = "update_online", wanted: Wanted | None = None
) -> Plan:
    config = load_config(recipe, ["algorithm_config.deepspeed_config_filename=ds_config_h100_zero1.json", *overrides])
    shares = shares_of(config, wanted or Wanted(), tuple(map(str, range(num_gpus))))
    return planned(config, size, Machine(gpu=gpu_named(gpu), cores=96), shares)


def speed(made: Plan, work: Workload | None = None) -> Rates:
    found = rates(made, work or Workload())
    assert found is not None
    return found


def training(size: ModelSize, *, stage: int, num_ranks: int) -> Training:
    """States alone, in bf16."""
    return Training(
        size=size,
        num_trained=size.num_parameters,
        num_served=size.num_parameters,
        dtype_bytes=2,
        stage=stage,
        num_ranks=num_ranks,
        tokens=0,
        completion_tokens=0,
        num_patches=0,
        checkpoints_activations=True,
    )


@pytest.mark.parametrize(("name", "published"), [("2B", 2_127_532_032), ("4B", 4_437_815_808), ("8B", 8_767_123_696)])
def test_parameters_are_those_of_the_published_files(sizes: dict[str, ModelSize], name: str, published: int) -> None:
    assert sizes[name].num_parameters == pytest.approx(published, rel=0.001)


def test_a_screenshot_has_the_tokens_that_the_processor_makes(sizes: dict[str, ModelSize]) -> None:
    assert sizes["2B"].screenshot_tokens(1280, 768) == 40 * 24


def test_tiles_are_counted_with_the_one_of_the_whole(tmp_path: Path) -> None:
    """Of all arrangements of at most twelve tiles, 3 x 2 comes closest to 5 : 3. One has 448 / 14 patches a side, 2 x 2 of
    them a token: 256 tokens."""
    InternVLConfig().save_pretrained(tmp_path)
    size = model_size(tmp_path)
    assert size.screenshot_tokens(1280, 768) == (3 * 2 + 1) * 256
    assert size.screenshot_tokens(448, 448) == 256
    assert size.patches(448, 448) == 32 * 32


@pytest.mark.parametrize("num_ranks", [1, 4, 8])
def test_states_are_what_deepspeed_estimates(sizes: dict[str, ModelSize], num_ranks: int) -> None:
    """Its estimate of stage 3 has no gradients beside those that the optimizer steps with."""
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs

    size = sizes["2B"]
    parts = ("weights", "gradients", "optimizer")
    two, three = (rank_gpu(training(size, stage=stage, num_ranks=num_ranks)).parts for stage in (2, 3))
    _, whole = estimate_zero2_model_states_mem_needs(size.num_parameters, num_ranks, 1, False, 1.5)
    assert sum(two[part] for part in parts) == pytest.approx(whole, rel=0.001)
    _, divided, _ = estimate_zero3_model_states_mem_needs(
        size.num_parameters, size.largest_layer, num_ranks, 1, False, False, False, 1.5
    )
    own_gradients = 2 * size.num_parameters / num_ranks
    assert sum(three[part] for part in parts) == pytest.approx(divided + own_gradients, rel=0.001)


def test_a_higher_stage_never_needs_more(sizes: dict[str, ModelSize]) -> None:
    for num_ranks in (2, 8):
        needs = [rank_gpu(training(sizes["8B"], stage=stage, num_ranks=num_ranks)).total for stage in (1, 2, 3)]
        assert needs == sorted(needs, reverse=True)


def test_adapters_have_gradients_and_optimizer_alone(sizes: dict[str, ModelSize]) -> None:
    plain, adapters = (plan(sizes["8B"], "H200", 8, f"trainer_config.lora.rank={rank}").training for rank in (0, 16))
    assert plain is not None
    assert adapters is not None
    assert adapters.num_trained < plain.num_trained / 100
    assert rank_gpu(adapters).parts["weights"] == rank_gpu(plain).parts["weights"]
    assert version_disk(adapters).total < version_disk(plain).total / 100


def test_frozen_parts_have_neither_gradients_nor_optimizer(sizes: dict[str, ModelSize]) -> None:
    size, parts = sizes["2B"], "trainer_config.freeze=[vision,projector]"
    plain, frozen = (plan(size, "H200", 8, *more) for more in ((), (parts,)))
    assert plain.training is not None
    assert frozen.training is not None
    assert frozen.training.num_trained == size.num_parameters - size.parts["vision"] - size.parts["projector"]
    before, after = (rank_gpu(each).parts for each in (plain.training, frozen.training))
    assert after["weights"] == before["weights"]
    assert all(after[name] < before[name] for name in ("gradients", "optimizer", "activations"))
    on_disk = version_disk(frozen.training).parts
    assert on_disk["for policies"] == version_disk(plain.training).parts["for policies"]
    assert speed(frozen).training_s < speed(plain).training_s


def test_a_cache_of_a_divided_model_holds_more(sizes: dict[str, ModelSize]) -> None:
    one, two = (
        Serving(size=sizes["8B"], dtype_bytes=2, num_parts=parts, memory=72 * GIB, tokens_a_step=8192, key_value_bytes=2)
        for parts in (1, 2)
    )
    assert serving_gpu(one).total == pytest.approx(72 * GIB)
    assert cached_tokens(two) > 2 * cached_tokens(one)


@pytest.mark.parametrize(
    ("said", "num_attending"),
    [({}, 8), ({"full_attention_interval": 8}, 4), ({"layer_types": ["full_attention"] + 31 * ["linear_attention"]}, 1)],
)
def test_recurrent_layers_keep_a_state_and_no_keys_and_values(
    tmp_path: Path, said: dict[str, object], num_attending: int
) -> None:
    """Qwen3.5-9B: keys and values have 4 heads of 256 numbers. A state, as vLLM shapes it, has 3 numbers for each of 2 * 16 *
    128 + 32 * 128 channels in bf16, and 32 heads of 128 x 128 in float32; beside the newest, one is kept for the next
    prompt."""
    Qwen3_5Config(text_config={"mamba_ssm_dtype": "float32", **said}, dtype="bfloat16").save_pretrained(tmp_path)
    size = model_size(tmp_path)
    token = 2 * num_attending * (4 * 256) * 2
    states = 2 * (32 - num_attending) * ((2 * 16 * 128 + 32 * 128) * 3 * 2 + 32 * 128 * 128 * 4)
    for parts in (1, 2):
        served = Serving(size=size, dtype_bytes=2, num_parts=parts, memory=72 * GIB, tokens_a_step=8192, key_value_bytes=2)
        room = serving_gpu(served).parts["keys and values"]
        assert cached_tokens(served) == int((room - states / parts) * parts / token)
        assert sequences_at_once(served, 16384) == int(room * parts / (16384 * token + states))


def test_what_fits_has_no_problems(sizes: dict[str, ModelSize]) -> None:
    made = plan(sizes["2B"], "H100", 8, "algorithm_config.per_device_train_batch_size=1", "policy_config.max_new_tokens=512")
    assert not list(problems(made))
    assert made.num_sequences > 1


def test_a_training_rank_that_does_not_fit_is_told_what_would(sizes: dict[str, ModelSize]) -> None:
    made = plan(sizes["8B"], "H200", 8)
    assert "a training rank needs" in next(problems(made)).sentence
    remedies = next(problems(made)).remedies
    assert remedies
    for remedy in remedies:
        assert not list(problems(plan(sizes["8B"], "H200", 8, *remedy.split())))


def test_one_gpu_for_both_is_divided(sizes: dict[str, ModelSize]) -> None:
    small = ("algorithm_config.per_device_train_batch_size=1", "policy_config.max_new_tokens=512")
    made = plan(sizes["2B"], "H100", 1, *small)
    assert "share a GPU" in next(problems(made)).sentence
    (remedy,) = next(problems(made)).remedies
    assert remedy.startswith("policy_config.gpu_memory_utilization=0.")
    assert not list(problems(plan(sizes["2B"], "H100", 1, *small, remedy)))


def test_a_cache_without_room_for_one_answer_is_told_what_would_give_it(sizes: dict[str, ModelSize]) -> None:
    made = plan(sizes["8B"], "MINE:24", 4, "feeder_config.mode=rollout", "policy_config.max_model_len=65536")
    assert "a policy's cache has room for" in next(problems(made)).sentence
    assert "policy_config.vllm_args.tensor_parallel_size=2" in next(problems(made)).remedies


def test_a_host_too_small_is_said(sizes: dict[str, ModelSize]) -> None:
    made = plan(sizes["8B"], "H200", 8)
    small = planned(made.config, made.size, replace(made.machine, host_memory=64 * GIB), made.shares)
    assert any(problem.sentence.startswith("the host needs") for problem in problems(small))


def test_a_host_holds_the_screenshots_that_policies_keep(sizes: dict[str, ModelSize]) -> None:
    """4 GiB that vLLM has prepared, and 1 GiB of the episodes that were answered last, unless the configuration says so."""
    six = plan(sizes["8B"], "H200", 8)
    assert six.num_policies == 6
    assert six.host.parts["policies' screenshots"] == 6 * (4 + 1) * GIB
    for given, cached in (("0", 0), ("1.5", 1.5), ("null", 4)):
        less = plan(
            sizes["8B"], "H200", 8, f"policy_config.vllm_args.mm_processor_cache_gb={given}", "policy_config.history_mb=512"
        )
        assert less.host.parts["policies' screenshots"] == 6 * (cached + 0.5) * GIB


def test_a_gpu_that_nobody_knows_is_said() -> None:
    for text in ("Foo", "Foo:", "Foo:48:1", "Foo:1:2:3:4"):
        with pytest.raises(ConfigurationError, match=r"write its memory in GiB behind it, as in Foo:80, .*Foo:80:990:3.3"):
            gpu_named(text)
    assert gpu_named("Foo:48").memory == 48 * GIB
    assert not gpu_named("Foo:48").is_known
    assert gpu_named("Foo:48:990:3.3") == Gpu("Foo", 48 * GIB, 990e12, 3.3e12)
    assert gpu_named("H100").is_known
    assert gpu_named("NVIDIA H100 80GB HBM3").memory == gpu_named("h100").memory


@pytest.mark.parametrize(
    ("name", "gib", "tflops"),
    [
        ("NVIDIA GeForce RTX 4090", 23.6, 165.2),
        ("rtx4090", 23.6, 165.2),
        ("NVIDIA A100-SXM4-80GB", 79.2, 312.0),
        ("NVIDIA L4", 22.5, 121.0),
        ("NVIDIA L40", 44.5, 181.0),
        ("NVIDIA L40S", 44.5, 362.0),
        ("NVIDIA H100 PCIe", 79.2, 756.0),
        ("NVIDIA GH200 480GB", 94.5, 989.4),
    ],
)
def test_gpus_are_told_apart_by_whole_words(name: str, gib: float, tflops: float) -> None:
    assert gpu_named(name).memory == gib * GIB
    assert gpu_named(name).flops == pytest.approx(tflops * 1e12)


@pytest.mark.parametrize("name", ["NVIDIA A1000", "Tesla V100-SXM2-16GB", "XL4", "NVIDIA RTX A4000"])
def test_a_name_that_only_holds_a_known_one_is_not_it(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is not known"):
        gpu_named(name)


def test_a_gpu_whose_memory_is_the_hosts_is_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA GB10, [N/A]'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert own_gpu() == Gpu("NVIDIA GB10", 0.0)
    assert main(["plan", "update_online", "policy_config.base_model=nowhere"]) == 78
    assert "the memory of NVIDIA GB10 is not known: write it in GiB, as in --gpu mine:80" in capsys.readouterr().err
    tool.write_text("#!/bin/sh\necho 'NVIDIA L40, 46068'\n")
    assert own_gpu() == replace(gpu_named("NVIDIA L40"), memory=46068.0 * 2**20)


def test_arithmetic_is_what_the_trainer_counts(tmp_path: Path) -> None:
    folder = describe_model(tmp_path / "2B", "2B")
    cost = ModelCost.of(AutoConfig.from_pretrained(folder))
    layers = 28 * 2048 * (2 * 16 * 128 + 2 * 8 * 128 + 3 * 6144)
    counted = 4000 * 2 * layers + 4000**2 * 2 * 28 * 16 * 128 + 300 * 2 * 2048 * 151936
    size = model_size(folder)
    assert forward_flops(size, 4000, predicted=300) == pytest.approx(counted, rel=1e-9)
    assert 4000 * cost.a_token + 4000**2 * cost.a_squared_length + 300 * cost.a_completion_token == pytest.approx(counted)
    seen = 3840 * cost.a_patch + 3840**2 * cost.a_squared_frame
    assert screenshot_flops(size, size.patches(1280, 768)) == pytest.approx(seen, rel=1e-9)
    assert seen > counted / 5


def test_of_experts_a_token_takes_those_that_it_is_sent_to(tmp_path: Path) -> None:
    """The shape of Qwen3-VL-30B-A3B, with every fourth layer without experts: 8 of 128 are 1/16 of what is multiplied with."""
    shape = {"hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936}
    experts = {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "intermediate_size": 6144}
    text = {**shape, **experts, "num_hidden_layers": 48, "mlp_only_layers": list(range(0, 48, 4))}
    Qwen3VLMoeConfig(text_config=text, dtype="bfloat16").save_pretrained(tmp_path)
    size = model_size(tmp_path)
    attention, one, router = 2048 * (2 * 4096 + 2 * 512), 3 * 2048 * 768, 2048 * 128
    active = 48 * attention + 12 * 3 * 2048 * 6144 + 36 * (8 * one + router)
    assert size.expert_parameters == 36 * 128 * one
    assert forward_flops(size, 1, predicted=0) == pytest.approx(2 * active + 2 * 48 * 4096)
    assert read_parameters(size, 1) == pytest.approx(size.num_parameters - 36 * 120 * one)
    assert read_parameters(size, 2) == pytest.approx(size.num_parameters - 36 * 120 * one * 15 / 16)
    assert read_parameters(size, 512) == pytest.approx(size.num_parameters)
    few, many = (speed(plan(size, "H200", 8, *_QUICK, f"env_config.server_size={number}")) for number in (1, 1024))
    dense = replace(size, expert_parameters=0, token_flops=2.0 * (active + 36 * 120 * one))
    assert few.answer_s < speed(plan(dense, "H200", 8, *_QUICK, "env_config.server_size=1")).answer_s / 3
    assert many.training_s < speed(plan(dense, "H200", 8, *_QUICK, "env_config.server_size=1024")).training_s / 3


_QUICK = ("policy_config.max_new_tokens=512", "objective=grpo")


def test_more_browsers_help_until_the_policies_are_full(sizes: dict[str, ModelSize]) -> None:
    found = [
        speed(plan(sizes["2B"], "H100", 8, *_QUICK, f"env_config.server_size={number}", "algorithm_config.num_train_epochs=1"))
        for number in (8, 32, 128, 1024)
    ]
    assert [each.steps_s for each in found] == sorted(each.steps_s for each in found)
    assert "browsers: more" in found[0].bottleneck
    few = speed(plan(sizes["2B"], "H100", 1, *_QUICK, "env_config.server_size=1"))
    assert few.steps_s == pytest.approx(1 / (Workload().page_s + few.answer_s), rel=1e-6), "one session, a step at a time"
    assert found[-1].steps_s == pytest.approx(found[-1].policies_steps_s, rel=1e-6)
    assert found[-1].steps_s < 2 * found[-2].steps_s


def test_what_holds_a_run_up_is_said(sizes: dict[str, ModelSize]) -> None:
    training = speed(plan(sizes["8B"], "H100", 8, *_QUICK, "env_config.server_size=512"))
    assert training.bottleneck.startswith("training: more ranks")
    less = ("algorithm_config.num_train_epochs=1", "objective_config.loss_agg_mode=token-mean")
    policies = plan(sizes["8B"], "H100", 8, *_QUICK, *less, "env_config.server_size=4096")
    lean = replace(policies, training=replace(policies.training, num_ranks=64)) if policies.training else policies
    assert speed(lean).bottleneck.startswith("policies: more of them")
    crowded = replace(lean, machine=replace(lean.machine, cores=1))
    assert speed(crowded).bottleneck.startswith("cores: another node")


def test_taking_turns_costs_the_longest_episode_and_the_other_half(sizes: dict[str, ModelSize]) -> None:
    turns, side_by_side = (speed(plan(sizes["2B"], "H100", 8, *_QUICK, f"feeder_config.mode={m}")) for m in ("sync", "async"))
    assert side_by_side.version_s == max(side_by_side.collecting_s, side_by_side.training_s)
    longest_s = 20 * (Workload().page_s + turns.answer_s)
    assert turns.version_s == pytest.approx(
        side_by_side.collecting_s + longest_s + turns.training_s + turns.refresh_s, rel=1e-6
    )


def test_nothing_is_said_of_a_gpu_whose_speed_nobody_knows(sizes: dict[str, ModelSize]) -> None:
    assert rates(plan(sizes["2B"], "MINE:80", 8, *_QUICK), Workload()) is None
    assert rates(plan(sizes["2B"], "H100", 8, "feeder_config.mode=rollout"), Workload()) is None


def test_published_runs_are_met(sizes: dict[str, ModelSize]) -> None:
    """docs/your_own_run.md has the table, and says what lies between."""
    openwebrl = plan(
        sizes["4B"],
        "B300",
        8,
        "feeder_config.mode=sync",
        "env_config.server_size=48",
        "env_config.train_tasks_rollout_size=240",
        "objective=grpo",
        "context_config.num_rounds=0",
        "algorithm_config.num_train_epochs=1",
        "browser_config.viewport_height=1000",
        "policy_config.max_new_tokens=1024",
        "policy_config.max_model_len=32768",
        wanted=Wanted(num_policies=8, policy_gpus=tuple("01234567"), trainer_gpus=tuple("01234567")),
    )
    work = Workload(steps=2000 / 240, answer_tokens=300, text_tokens=6900, page_s=7.8)
    found = speed(openwebrl, work)
    assert found.collecting_s + 296 == pytest.approx(1104, rel=0.25), "its browsers took 296 s to start"
    async_webrl = plan(sizes["8B"], "H100", 64, recipe="async_webrl", wanted=Wanted(num_policies=48, num_browsers=40))
    without_recomputing = 3 / 4
    assert without_recomputing * speed(async_webrl).training_s == pytest.approx(96, rel=0.25)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = describe_model(tmp_path / "model", "2B")
    words = ["plan", "update_online", "--gpu", "H100", "--gpus", "8", f"policy_config.base_model={model}"]
    assert main([*words, "algorithm_config.per_device_train_batch_size=1", "policy_config.max_new_tokens=512"]) == 0
    said = capsys.readouterr().out
    assert "2.13 billion parameters" in said
    assert "it fits" in said
    assert "an hour" in said
    assert "what holds it up: " in said
    assert main([*words, "--json", "algorithm_config.per_device_train_batch_size=64"]) == 1
    figures = json.loads(capsys.readouterr().out)
    assert figures["problems"][0]["would_fit"]
    assert figures["rates"]["versions_an_hour"] > 0
