"""What a check of GPUs consists of, and how it is told when a part fails."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig

from ops.cli import main
from ops.config.loading import load_config
from ops.gpu_check import checks, display, training
from ops.gpu_check.checks import Part
from ops.gpu_check.kernels import OTHERS, kind_of
from ops.gpu_check.learning import config_of
from ops.gpu_check.random_model import SHAPES, describe_model
from ops.gpu_check.refreshing import require_room
from ops.gpu_check.results import SCRATCH, Agreement, Learning, Refresh, Serving, Throughput, Trained, Training, write
from trainer.engine.settings import EngineSettings
from trainer.ports import Effort, StepResult


def names(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]


def planned(num_gpus: int, *only: str) -> dict[str, Part]:
    found = checks.parts(Path("model"), Path("out"), num_gpus=num_gpus, minutes=20.0, only=only)
    return {part.name: part for part in found}


def test_parts_that_need_several_gpus_are_left_out_without_them() -> None:
    assert list(planned(0)) == list(planned(1)) == ["serving", "training", "learning"]
    assert list(planned(6)) == ["serving", "serving in parts", "training", "learning"]
    assert planned(6)["serving in parts"].arguments[-1] == "4", "heads are divided by powers of two"
    assert list(planned(8, "training", "serving")) == ["serving", "training"]
    assert planned(1)["learning"].arguments[2:] == ("1200.0", "gpu")


@pytest.mark.anyio
async def test_a_part_that_fails_says_why_and_where(tmp_path: Path) -> None:
    failure = await checks.run(Part("serving", "ops.gpu_check.nothing", (), 60.0), tmp_path)
    assert failure is not None
    assert "No module named ops.gpu_check.nothing; " in failure.reason
    assert failure.reason.endswith("serving.log has its output")
    assert await checks.run(Part("fine", "this", (), 60.0), tmp_path) is None


@pytest.mark.anyio
async def test_a_part_that_never_ends_is_ended_and_leaves_no_copies_of_models(tmp_path: Path) -> None:
    copy = tmp_path / f"{SCRATCH}abc" / "v1" / "model.safetensors"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"weights")
    failure = await checks.run(Part("slow", "http.server", ("--bind", "127.0.0.1", "0"), 1.0), tmp_path)
    assert failure is not None
    assert failure.reason.startswith("it did not end within 1 s; ")
    assert names(tmp_path) == ["slow.log"]


def test_every_figure_has_a_line(tmp_path: Path) -> None:
    throughput = (Throughput(1, 1, 10, 20, 2.0), Throughput(16, 16, 160, 320, 4.0))
    refreshes = (Refresh("path", 4000.0, None, 3.0), Refresh("bus", 4000.0, 9.0, 7.0))
    serving = Serving(
        device="H100",
        num_parts=1,
        opened_s=50.0,
        memory_gib=47.0,
        planned_gib=47.5,
        throughput=throughput,
        refreshes=refreshes,
    )
    run = Training(
        device="H100",
        layout="packed",
        samples_at_once=16,
        tokens_a_step=100,
        step_s=1.0,
        tokens_per_s=100.0,
        tflops_per_s=400.0,
        mfu=0.41,
        memory_gib=60.0,
        planned_gib=58.0,
        gpu_s={"matrix products": 0.5, "attention": 0.2},
    )
    write(tmp_path, "serving-1", serving)
    write(tmp_path, "training", Trained((run,), Agreement("torch.bfloat16", 0.01, 0.0002, 0.0)))
    write(tmp_path, "learning", Learning(seconds=1200.0, num_versions=2, success=(0.1, 0.3), most_k3=0.001))
    found = {(line.part, line.figure): (line.value, line.expected) for line in display.lines(tmp_path)}
    assert found["serving", "sampled, 16 answers at once"] == (80.0, "")
    assert found["serving", "memory of a GPU"] == (47.0, "millrace plan: 47.5")
    assert found["serving", "next version, 4,000 MB by bus"] == (7.0, "")
    assert found["training, packed", "trained, 16 samples at once"] == (100.0, "")
    assert found["training, packed", "MFU"] == (0.41, "at least 0.40")
    assert found["training, packed", "of a step's 1.00 s: attention"] == (0.2, "")
    assert found["policy and bfloat16 trainer", "k3"] == (0.0002, "at most 0.01")
    assert found["learning", "versions"] == (6.0, "")
    assert found["learning", "of the last one's"] == (0.3, "")
    display.plot(tmp_path, tmp_path / "gpu_check.png")
    assert (tmp_path / "gpu_check.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN", "matrix products"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x64_1x4x1_cga1x1x1_kernel0_0", "attention"),
        (
            "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, cutlass::bfloat16_t>>",
            "attention",
        ),
        ("triton_poi_fused__unsafe_view_mul_silu_1", "fused by the compiler"),
        ("void at::native::multi_tensor_apply_kernel<at::native::FusedAdamMathFunctor<float, 4>>", "optimizer"),
        ("Memcpy DtoD (Device -> Device)", "copies"),
        ("void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<BinaryFunctor>>", OTHERS),
    ],
)
def test_kernels_are_told_by_their_names(kernel: str, kind: str) -> None:
    assert kind_of(kernel) == kind


def test_a_micro_batch_that_does_not_fit_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    class Engine:
        def train(self, items: object) -> StepResult:
            if tried[-1] > 4:
                raise torch.OutOfMemoryError
            return StepResult(1.0, 1.0, 1e-6, 10, {}, Effort(1.0, 10, 10, 1e12, 0.0))

    @contextmanager
    def opened(model: Path, *, settings: EngineSettings) -> Iterator[Engine]:
        tried.append(settings.algorithm.per_device_train_batch_size)
        yield Engine()

    monkeypatch.setattr(training, "open_engine", opened)
    packed = training.LAYOUTS[0]
    found = [training.measured(Path("model"), [], packed, at_once) for at_once in packed.at_once]
    assert tried == [16, 8, 4, 2, 1]
    assert [each is not None for each in found] == [False, False, True, True, True]


@pytest.mark.parametrize("on_gpu", [True, False])
def test_the_loop_of_the_check_is_a_configuration_that_can_run(tmp_path: Path, on_gpu: bool) -> None:
    import yaml

    file = tmp_path / "learning.yaml"
    file.write_text(yaml.safe_dump(config_of(tmp_path / "model", tmp_path, on_gpu=on_gpu)))
    config = load_config(str(file), [])
    assert config.objective_config.adv_estimator == "grpo"
    assert config.algorithm_config.deepspeed_config_filename.endswith("zero1.json")


def test_a_folder_without_a_model_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu-check", str(tmp_path), "--out", str(tmp_path / "out")]) != 0
    assert "it has no config.json" in capsys.readouterr().err


def test_a_disk_too_small_for_the_copies_is_said_before_anything_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, out = describe_model(tmp_path / "model", "2B"), tmp_path / "out"
    with (model / "model.safetensors").open("wb") as weights:
        weights.truncate(4 << 30)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=16 << 30))
    assert main(["gpu-check", str(model), "--out", str(out)]) == 78
    said = capsys.readouterr().err
    assert f"the disk of {out} has 16.0 GiB free and the part serving needs 16.5, for 4 copies of the model's 4.0 GiB" in said
    assert "make room, name a folder on another disk with --out, or leave that part out" in said
    assert names(out) == []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=17 << 30))
    require_room(model, out)


@pytest.mark.parametrize("name", SHAPES)
def test_random_models_have_positions_that_both_programs_read_alike(tmp_path: Path, name: str) -> None:
    from vllm.transformers_utils.config import uses_mrope

    config = AutoConfig.from_pretrained(describe_model(tmp_path, name))
    assert uses_mrope(config)
    assert config.text_config.rope_parameters["mrope_section"] == [24, 20, 20], (
        "what transformers takes where none are written"
    )
