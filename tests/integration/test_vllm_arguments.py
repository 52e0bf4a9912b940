"""What vLLM itself does not know or refuses is said before an engine starts; in a child, since vLLM changes its process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import HANGS_S
from tests.support.agents import tiny_models

pytestmark = [pytest.mark.integration]
_SCRIPT = """
import sys
from pathlib import Path
from agents.vllm_arguments import VllmSettings, engine_config
from agents.vllm_core import _ENVIRONMENT
from schemas.errors import ConfigurationError
from schemas.policy_config import PolicyConfig
import os
os.environ.update(_ENVIRONMENT)
for given in ({"tensor_paralel_size": 2}, {"tensor_parallel_size": 7}, {"kv_cache_dtype": "fp3"}):
    policy = PolicyConfig(max_new_tokens=8, max_model_len=512, vllm_args=given)
    settings = VllmSettings(
        folder=Path(sys.argv[1]), version=0, policy=policy, cutoff_len=512, max_screenshots=1, seed=1
    )
    try:
        engine_config(settings, on_cpu=True)
    except ConfigurationError as error:
        print("said:", str(error).replace(chr(10), " "))
"""


def test_unknown_names_and_refused_values_are_said(tmp_path: Path) -> None:
    model = tiny_models.build(tmp_path / "model", seed=1)
    child = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(model)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-4000:]
    said = [line.removeprefix("said: ") for line in child.stdout.splitlines() if line.startswith("said: ")]
    assert said[0].endswith(
        "vllm_args.tensor_paralel_size is no argument of this vLLM's engine; did you mean tensor_parallel_size?"
    )
    assert len(said) == 3
    for line, name in zip(said[1:], ("tensor_parallel_size", "kv_cache_dtype"), strict=True):
        assert line.startswith(f"vLLM refuses what it is to be started with (of policy_config.vllm_args: {name}): ")
