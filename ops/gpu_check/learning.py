"""Some minutes of the whole loop on MiniWoB++: real pages, the policy, a judge and the trainer on one machine's GPUs."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

from ops.gpu_check.results import Learning, write
from ops.processes.role_process import millrace_command, millrace_environment
from trainer.tracking.metrics_file import rows_behind

_PAGES = "click-test,click-test-2,click-button,click-dialog,click-option,enter-text,focus-text,login-user"
_ENDS_S = 60.0
"""That a run has to leave."""
_SHORT_S = 600.0


def config_of(model: Path, folder: Path, *, on_gpu: bool) -> dict[str, object]:
    """GRPO in groups of eight, every group of one page; a policy and a training rank share a GPU where there is one alone."""
    return {
        "defaults": ["update_online", {"objective": "grpo"}],
        "policy_config": {
            "base_model": str(model),
            "max_new_tokens": 256 if on_gpu else 48,
            "max_model_len": 8192 if on_gpu else 1024,
            "max_num_seqs": 64 if on_gpu else 16,
            "top_p": 1.0,
            "top_k": -1,
            "gpu_memory_utilization": 0.35,
        },
        "context_config": {"interaction_mode": "coordinates", "num_rounds": 1},
        "browser_config": {"viewport_width": 160, "viewport_height": 210},
        "env_config": {
            "train_tasks": str(folder / "train.jsonl"),
            "test_tasks": str(folder / "held_out.jsonl"),
            "server_size": 24,
            "train_tasks_rollout_size": 128 if on_gpu else 16,
            "max_unparsed": 2,
            "train_difficulty_max_steps": {"easy": 6, "medium": 6, "hard": 6},
        },
        "feeder_config": {"num_iterations": 1000, "max_staleness": 1, "max_concurrent": 64, "evaluate_first": False},
        "algorithm_config": {
            "per_device_train_batch_size": 16,
            "max_tokens_per_micro_batch": 16384,
            "cutoff_len": 8192 if on_gpu else 1024,
            "learning_rate": 1e-6,
            "deepspeed_config_filename": f"ds_config_{'h100' if on_gpu else 'cpu'}_zero1.json",
            "report_to": "none",
        },
        "bus_config": {"run": "gpu-check"},
    }


def check(model: Path, folder: Path, *, seconds: float, on_gpu: bool) -> Learning:
    """Raises `CalledProcessError` or `TimeoutExpired` when tasks cannot be written, or the run cannot begin."""
    run, settings = folder / "run", folder / "learning.yaml"
    # Otherwise an earlier check's run would go on, with that one's model.
    shutil.rmtree(run, ignore_errors=True)
    for name, seeds in (("train", "0:200"), ("held_out", "1000:1005")):
        words = ["tasks", "miniwob", "--pages", _PAGES, "--seeds", seeds, "--out", str(folder / f"{name}.jsonl")]
        subprocess.run(millrace_command(words), env=millrace_environment(), check=True, timeout=_SHORT_S)
    settings.write_text(yaml.safe_dump(config_of(model, folder, on_gpu=on_gpu)), encoding="utf-8")
    began = time.monotonic()
    words = ["run", str(settings), "--run-dir", str(run)]
    with subprocess.Popen(millrace_command(words), env=millrace_environment(), stdin=subprocess.DEVNULL) as child:
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(_ENDS_S)
            except subprocess.TimeoutExpired:
                child.kill()
    return _told(run, time.monotonic() - began)


def _told(run: Path, seconds: float) -> Learning:
    versions = [row.metrics for row, _ in rows_behind(run / "metrics.jsonl", 0) if not row.evaluates]
    return Learning(
        seconds=seconds,
        num_versions=len(versions),
        success=tuple(row["success"] for row in versions),
        most_k3=max((row["mismatch_k3"] for row in versions if "mismatch_k3" in row), default=None),
    )


def main() -> None:
    model, folder, seconds, on_gpu = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4] == "gpu"
    write(folder, "learning", check(model, folder, seconds=seconds, on_gpu=on_gpu))


if __name__ == "__main__":
    main()
