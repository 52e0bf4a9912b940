"""Models by their names on a hub: fetched once, whole, whatever broke off; and what cannot be had is said in a sentence."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from ops.processes.role_process import millrace_environment
from tests.deadlines import HANGS_S
from tests.support.agents.loopback_hub import COMMIT, LoopbackHub, loopback_hub
from tests.support.closed_port import closed_port

pytestmark = [pytest.mark.integration]
NAME = "someone/a-model"
FILES = {
    "config.json": b'{"model_type": "qwen3_vl"}',
    "tokenizer.json": b"{}",
    "model.safetensors.index.json": b"{}",
    **{f"model-0000{n}-of-00002.safetensors": random.Random(n).randbytes(3_000_000) for n in (1, 2)},
    "original/consolidated.00.pth": b"the same once more",
    "pytorch_model.bin": b"a pickle",
    "README.md": b"words",
}
OURS = {name for name in FILES if name.endswith((".json", ".safetensors"))}
_ASKS = """
import sys
import ops.run.hub
from ops.run.base_models import model_folder, model_here, pinned
from schemas.errors import ConfigurationError
from schemas.policy_config import PolicyConfig
ops.run.hub._PAUSES_S = (0.01, 0.01)
name = sys.argv[1]
try:
    print("=", model_here(name) or "not here")
    print("=", model_folder(name))
    print("=", pinned(PolicyConfig(base_model=name)))
except ConfigurationError as error:
    sys.exit(f"said: {error}")
"""


_FULL = """
import errno, huggingface_hub
def full(*given, local_files_only=False, **named):
    if local_files_only:
        raise huggingface_hub.errors.LocalEntryNotFoundError("nothing")
    raise OSError(errno.ENOSPC, "No space left on device")
huggingface_hub.snapshot_download = full
"""


def asked(
    hub: LoopbackHub, home: Path, name: str = NAME, first: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """What a process of its own is told: the client library reads its environment when it is loaded."""
    own = {"HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1", **environment}
    return subprocess.run(
        [sys.executable, "-c", first + _ASKS, name],
        env={**millrace_environment(), **own},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )


def answers(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Between what is logged."""
    assert done.returncode == 0, done.stderr
    return [line.removeprefix("= ") for line in done.stdout.splitlines() if line.startswith("= ")]


def test_a_model_is_fetched_once_and_keeps_its_name(tmp_path: Path) -> None:
    with loopback_hub(LoopbackHub(NAME, FILES)) as hub:
        first = asked(hub, tmp_path)
        here, folder, pinned = answers(first)
        assert (here, pinned) == ("not here", f"{NAME}@{COMMIT}")
        found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
        assert found == {name: FILES[name] for name in OURS}
        num_fetched = len(hub.fetched)
        assert answers(asked(hub, tmp_path, name=pinned)) == [folder, folder, pinned]
        assert len(hub.fetched) == num_fetched
    assert answers(asked(hub, tmp_path, HF_HUB_OFFLINE="1")) == [folder, folder, pinned]


def test_what_broke_off_is_gone_on_with(tmp_path: Path) -> None:
    with loopback_hub(LoopbackHub(NAME, FILES, num_breaks=2, num_errors=1)) as hub:
        done = asked(hub, tmp_path, first="import huggingface_hub.constants as used\nused.DOWNLOAD_CHUNK_SIZE = 2**16\n")
        folder = Path(answers(done)[1])
        for name in OURS:
            assert (folder / name).read_bytes() == FILES[name]
        begun = [begin for name, begin in hub.fetched if name.endswith(".safetensors")]
        assert any(begun), "it did not begin at the beginning again"


def test_a_token_is_heeded(tmp_path: Path) -> None:
    with loopback_hub(LoopbackHub(NAME, FILES, token="hf_mine")) as hub:
        assert asked(hub, tmp_path, HF_TOKEN="hf_mine").returncode == 0
        wrong = asked(hub, tmp_path / "other", HF_TOKEN="hf_other")
        assert (
            f"{hub.url} shows no model of that name: correct it, or put a token that may see it into HF_TOKEN" in wrong.stderr
        )
        assert "hf_other" not in wrong.stderr + wrong.stdout


@pytest.mark.parametrize(
    ("name", "hub", "said"),
    [
        ("someone/another", LoopbackHub(NAME, FILES), "said: there is no folder someone/another here, and http"),
        (f"{NAME}@v9", LoopbackHub(NAME, FILES), f"said: {NAME} has no revision 'v9' on http"),
        (NAME, LoopbackHub(NAME, FILES, gated=True), f"said: {NAME} is gated: ask for access at http"),
        (NAME, LoopbackHub(NAME, FILES, num_errors=99), f" does not serve {NAME} (Server error '503"),
        (
            "models/my--own",
            LoopbackHub(NAME, FILES),
            "said: there is no folder models/my--own here, and no model can have that",
        ),
        ("models/../mine", LoopbackHub(NAME, FILES), "said: policy_config.base_model is 'models/../mine': write the path of"),
        ("", LoopbackHub(NAME, FILES), "said: policy_config.base_model is '': write the path of"),
    ],
)
def test_what_cannot_be_had_is_said_with_what_to_do(tmp_path: Path, name: str, hub: LoopbackHub, said: str) -> None:
    with loopback_hub(hub):
        done = asked(hub, tmp_path, name=name)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_hub_that_is_not_there_is_said(tmp_path: Path) -> None:
    with closed_port() as port:
        hub = LoopbackHub(NAME, FILES, url=f"http://127.0.0.1:{port}")
        done = asked(hub, tmp_path)
        offline = asked(hub, tmp_path, HF_HUB_OFFLINE="1")
    assert f"said: {hub.url} cannot be reached (" in done.stderr
    assert "name a mirror with HF_ENDPOINT" in done.stderr
    assert "HF_HUB_OFFLINE forbids to fetch it" in offline.stderr


def test_a_cache_without_room_is_said(tmp_path: Path) -> None:
    with loopback_hub(LoopbackHub(NAME, FILES)) as hub:
        done = asked(hub, tmp_path, first=_FULL)
    assert f"said: {tmp_path}/hub has no room for {NAME}: free some, or name another folder with HF_HOME" in done.stderr


def test_a_folder_is_itself_and_a_broken_one_is_none(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with loopback_hub(LoopbackHub(NAME, FILES)) as hub:
        broken = asked(hub, tmp_path, name=str(tmp_path / "model"))
        assert "write the path of a model folder" in broken.stderr
        (tmp_path / "model" / "config.json").write_text(json.dumps({}))
        assert answers(asked(hub, tmp_path, name=str(tmp_path / "model"))) == [str(tmp_path / "model")] * 3
    assert hub.fetched == []
