"""What a check of GPUs consists of, and how it is told when a part fails."""

from pathlib import Path

import pytest

from ops.cli import main
from ops.config.loading import load_config
from ops.gpu_check import checks, display
from ops.gpu_check.checks import Part
from ops.gpu_check.learning import config_of
from ops.gpu_check.results import Agreement, Learning, Refresh, Serving, Throughput, Trained, Training, write


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
async def test_a_part_that_never_ends_is_ended(tmp_path: Path) -> None:
    failure = await checks.run(Part("slow", "http.server", ("--bind", "127.0.0.1", "0"), 1.0), tmp_path)
    assert failure is not None
    assert failure.reason.startswith("it did not end within 1 s; ")


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
        tokens_a_step=100,
        step_s=1.0,
        tokens_per_s=100.0,
        tflops_per_s=400.0,
        mfu=0.41,
        memory_gib=60.0,
        planned_gib=58.0,
    )
    write(tmp_path, "serving-1", serving)
    write(tmp_path, "training", Trained((run,), Agreement("torch.bfloat16", 0.01, 0.0002, 0.0)))
    write(tmp_path, "learning", Learning(seconds=1200.0, num_versions=2, success=(0.1, 0.3), most_k3=0.001))
    found = {(line.part, line.figure): (line.value, line.expected) for line in display.lines(tmp_path)}
    assert found["serving", "sampled, 16 answers at once"] == (80.0, "")
    assert found["serving", "memory of a GPU"] == (47.0, "millrace plan: 47.5")
    assert found["serving", "next version, 4,000 MB by bus"] == (7.0, "")
    assert found["training, packed", "MFU"] == (0.41, "at least 0.40")
    assert found["policy and bfloat16 trainer", "k3"] == (0.0002, "at most 0.01")
    assert found["learning", "versions"] == (6.0, "")
    assert found["learning", "of the last one's"] == (0.3, "")
    display.plot(tmp_path, tmp_path / "gpu_check.png")
    assert (tmp_path / "gpu_check.png").stat().st_size > 0


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
