"""A real vLLM server on CPU with an untrained tiny model, as a child on loopback: nonsense in a real protocol.

It imports vLLM twice (server and engine), some 30 s of CPU time: one server for a whole test module.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bus.server.ports import held_port
from ops.quickstart.tiny_model import TinyShape, build_tiny_model, sentence_tokenizer
from tests.deadlines import HANGS_S

MODEL = "tiny"
KEY = "sesame"
MAX_SCREENSHOTS = 8
_SHAPE = TinyShape()
_READY = "Application startup complete"
_STOP_S = 20.0
_ENVIRONMENT = {
    "VLLM_API_KEY": KEY,
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    # Keeps the model in the engine's process; a worker of its own would import vLLM a third time.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_NO_USAGE_STATS": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}


@dataclass(frozen=True, slots=True)
class VllmServer:
    base_url: str
    log: Path


@contextmanager
def vllm_server(
    folder: Path, texts: Sequence[str], *, max_model_len: int = 16_384, shape: TinyShape = _SHAPE, options: Sequence[str] = ()
) -> Iterator[VllmServer]:
    """`texts` are the prompts that it will be asked: they become few tokens. Answers follow a JSON schema if one is asked for.
    `options` are further arguments of the server's.

    Raises:
        RuntimeError: the server did not start; with the end of its log.
    """
    model = folder / "model"
    build_tiny_model(model, sentence_tokenizer(texts, max_vocabulary=2048), seed=1, shape=shape)
    _allow_length(model, max_model_len)
    with held_port() as port:
        server = VllmServer(f"http://127.0.0.1:{port}/v1", folder / "server.log")
        child = subprocess.Popen(
            [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *_arguments(model, port, max_model_len), *options],
            env=os.environ | _ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started = threading.Event()
        reader = threading.Thread(target=_read, args=(child, server.log, started))
        reader.start()
        try:
            if not started.wait(HANGS_S) or child.poll() is not None:
                raise RuntimeError("vLLM did not start: " + server.log.read_text()[-4000:])
            yield server
        finally:
            _stop(child)
            reader.join()


def _arguments(model: Path, port: int, max_model_len: int) -> list[str]:
    options: dict[str, object] = {
        "model": model,
        "served-model-name": MODEL,
        "host": "127.0.0.1",
        "port": port,
        "dtype": "float32",
        "max-model-len": max_model_len,
        "max-num-seqs": 8,
        "kv-cache-memory-bytes": 128 << 20,
        "mm-processor-cache-gb": 0.125,
        "distributed-executor-backend": "uni",
        "limit-mm-per-prompt": json.dumps({"image": MAX_SCREENSHOTS, "video": 0}),
        # An untrained model would write white space for ever.
        "structured-outputs-config": json.dumps({"backend": "xgrammar", "disable_any_whitespace": True}),
    }
    named = (text for name, value in options.items() for text in (f"--{name}", str(value)))
    return [*named, "--enforce-eager", "--skip-mm-profiling", "--disable-log-stats"]


def _allow_length(model: Path, num_tokens: int) -> None:
    """Rotary positions go on as far as one likes; only the files say where the model ends."""
    config = json.loads((model / "config.json").read_text())
    config["text_config"]["max_position_embeddings"] = num_tokens
    (model / "config.json").write_text(json.dumps(config))
    tokenizer = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps(tokenizer | {"model_max_length": num_tokens}))


def _read(child: subprocess.Popen[str], log: Path, started: threading.Event) -> None:
    """Until the child's output ends, so that it never waits for a reader."""
    assert child.stdout is not None
    with log.open("w") as kept, child.stdout as lines:
        for line in lines:
            kept.write(line)
            kept.flush()
            if _READY in line:
                started.set()
    child.wait()
    started.set()


def _stop(child: subprocess.Popen[str]) -> None:
    child.terminate()
    try:
        child.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        # Its own session: the engine is in it too.
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
