"""The OpenAI-compatible engine against a scripted endpoint on loopback, with the real client."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agents.engine import ChatMessage, GenerationRequest
from agents.openai_engine import OpenAIEngine
from schemas.config import PolicyConfig
from schemas.errors import ConfigurationError, PolicyError
from schemas.messages import Picture
from tests import builders

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

PICTURE = Picture(data=b"\xff\xd8jpeg", media_type="image/jpeg", width=4, height=4)
REQUEST = GenerationRequest(
    messages=(ChatMessage("system", ("Be brief.",)), ChatMessage("user", ("Task: x\n", PICTURE))),
    observation=builders.observation(builders.task()),
)
ANSWER = {
    "id": "1", "object": "chat.completion", "created": 0, "model": "m",
    "choices": [{
        "index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Action: x \ud800"},
        "logprobs": {"content": [{"token": "A", "logprob": -0.25, "bytes": None, "top_logprobs": []}], "refusal": None},
    }],
}  # fmt: skip


class Endpoint(ThreadingHTTPServer):
    """Answers with what `script` says next, (status, body); the last entry repeats."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: list[tuple[int, dict[str, object]]] = []
        self.seen: list[dict[str, object]] = []
        self.hang = threading.Event()
        self.hang.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append(body | {"authorization": self.headers["authorization"]})
        self.server.hang.wait(5)
        script = self.server.script
        status, answer = script.pop(0) if len(script) > 1 else script[0]
        payload = json.dumps(answer).encode()
        try:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)
        except OSError:
            return

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("TEST_KEY", "sesame")
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.hang.set()
    server.shutdown()
    thread.join()
    server.server_close()


def _engine(endpoint: Endpoint, timeout_s: float = 5.0) -> OpenAIEngine:
    policy = PolicyConfig(
        engine="openai", base_model="m", base_url=endpoint.url, api_key_env_var="TEST_KEY", vllm_timeout=timeout_s
    )
    return OpenAIEngine(policy)


async def test_messages_and_answer(endpoint: Endpoint) -> None:
    endpoint.script = [(200, ANSWER)]
    async with _engine(endpoint) as engine:
        generation = await engine.generate(REQUEST)
    (sent,) = endpoint.seen
    assert sent["authorization"] == "Bearer sesame"
    assert (sent["model"], sent["temperature"], sent["top_p"], sent["logprobs"]) == ("m", 1.0, 0.99, True)
    url = "data:image/jpeg;base64," + base64.b64encode(PICTURE.data).decode()
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Task: x\n"}, {"type": "image_url", "image_url": {"url": url}}],
        },
    ]
    assert (generation.text, generation.finish_reason, generation.logprobs) == ("Action: x ?", "stop", (-0.25,))
    assert generation.completion_tokens == ()


async def test_an_endpoint_without_logprobs_is_asked_once(endpoint: Endpoint) -> None:
    plain = json.loads(json.dumps(ANSWER))
    plain["choices"][0]["logprobs"] = None
    endpoint.script = [(400, {"error": {"message": "logprobs unsupported"}}), (200, plain)]
    async with _engine(endpoint) as engine:
        assert (await engine.generate(REQUEST)).logprobs == ()
        await engine.generate(REQUEST)
    assert ["logprobs" in sent for sent in endpoint.seen] == [True, False, False]


@pytest.mark.parametrize("status", [400, 429, 500, 503])
async def test_failures_are_tried_again(endpoint: Endpoint, status: int) -> None:
    endpoint.script = [(status, {"error": {"message": "no"}})]
    async with _engine(endpoint) as engine:
        with pytest.raises(PolicyError, match="gave no answer"):
            await engine.generate(REQUEST)


async def test_an_answer_without_choices_is_an_error(endpoint: Endpoint) -> None:
    endpoint.script = [(200, ANSWER | {"choices": []})]
    async with _engine(endpoint) as engine:
        with pytest.raises(PolicyError, match="no choice"):
            await engine.generate(REQUEST)


async def test_a_silent_endpoint_times_out(endpoint: Endpoint) -> None:
    endpoint.script = [(200, ANSWER)]
    endpoint.hang.clear()
    async with _engine(endpoint, timeout_s=0.2) as engine:
        with pytest.raises(PolicyError):
            await engine.generate(REQUEST)


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_wrong_key_or_model_is_the_users_to_mend(endpoint: Endpoint, status: int) -> None:
    endpoint.script = [(status, {"error": {"message": "no"}})]
    async with _engine(endpoint) as engine:
        with pytest.raises(ConfigurationError, match="TEST_KEY"):
            await engine.generate(REQUEST)


async def test_no_endpoint_is_tried_again(endpoint: Endpoint) -> None:
    policy = PolicyConfig(engine="openai", base_model="m", base_url="http://127.0.0.1:9/v1", api_key_env_var="TEST_KEY")
    async with OpenAIEngine(policy) as engine:
        with pytest.raises(PolicyError):
            await engine.generate(REQUEST)


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="TEST_KEY is not set"):
        OpenAIEngine(PolicyConfig(engine="openai", api_key_env_var="TEST_KEY"))
