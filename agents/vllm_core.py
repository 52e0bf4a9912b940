"""vLLM on one thread of this process: everything that touches the engine runs there, between two of its steps.

Invariant: weights change only between steps, and an adapter is its request's to the end, so every token belongs to exactly one
policy version.

The engine core runs in the process (no EngineCore child): one import of vLLM instead of three, no serialisation of
screenshots, and a death of the engine is an exception here or the end of the process. A model in several parts
(`policy_config.vllm_args`) has one child for each, which ends with this process.
"""

import logging
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image, UnidentifiedImageError

from agents.engine import Generation
from agents.fitting import max_prompt
from agents.tokens import PromptTokenizer
from agents.vllm_adapters import VllmAdapters, adapter_spans, require_adapters
from agents.vllm_arguments import VllmSettings, engine_config, model_config
from schemas.errors import ConfigurationError, PolicyError, PromptRefused
from schemas.ids import PolicyVersion
from schemas.messages import Screenshot, VersionSpan

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.outputs import RequestOutput
    from vllm.v1.engine.llm_engine import LLMEngine

_SUPPRESSED = -100.0
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # A model in several parts has a process for each; this one has threads, which no fork would survive.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "HF_HUB_OFFLINE": "1",
    # The engine's rendezvous with itself must not listen beyond this machine, nor must the parts of a model.
    "VLLM_HOST_IP": "127.0.0.1",
    "GLOO_SOCKET_IFNAME": "lo",
    "NCCL_SOCKET_IFNAME": "=lo",
}
_THREADS = "OMP_NUM_THREADS"
"""Read when torch is imported. On a GPU vLLM sees to its own threads, unless somebody has."""

_NOISY = ("vllm.v1.worker.cpu_worker", "vllm.model_executor.model_loader.reload.layerwise")
"""The first says for every prompt on CPU that threads are left alone; the second calls layers without weights failures."""


@dataclass
class VllmCore:
    """The engine, to be used from one thread. Prompts alone are prepared on another (`prepare`)."""

    settings: VllmSettings
    tokenizer: PromptTokenizer
    _llm: "LLMEngine" = field(init=False)
    _adapters: VllmAdapters = field(init=False)
    _params: "dict[float, SamplingParams]" = field(init=False)
    _looking_up: threading.Lock = field(default_factory=threading.Lock, init=False)
    """Held where vLLM looks for its processor, and where that place is another for a while."""
    _refusals: tuple[type[Exception], ...] = field(init=False)

    def boot(self) -> None:
        """Imports vLLM and loads the model: 10 to 20 s of CPU time on a small machine.

        Raises:
            ConfigurationError: vLLM is not installed, or refuses what it is to be started with.
        """
        has_threads = _THREADS in os.environ
        for name, value in (_ENVIRONMENT | {_THREADS: str(max(1, (os.cpu_count() or 2) // 2))}).items():
            os.environ.setdefault(name, value)
        with warnings.catch_warnings():
            # Third-party deprecations at import; nothing of ours runs in here.
            warnings.simplefilter("ignore")
            self._boot(has_threads=has_threads)

    def _boot(self, *, has_threads: bool) -> None:
        try:
            from vllm.exceptions import VLLMClientError
            from vllm.model_executor.models import ModelRegistry
            from vllm.v1.engine.llm_engine import LLMEngine
        except ImportError as error:
            raise ConfigurationError(
                f"vLLM cannot be imported ({error}): install the extra policy-cpu, or policy on a GPU"
            ) from error
        import torch
        from torch._dynamo import config as dynamo
        from vllm.platforms import current_platform

        on_cpu = current_platform.is_cpu()
        if on_cpu:
            # A compiled sampler saves microseconds, costs seconds at the start, and needs a C++ compiler.
            dynamo.disable = True
            os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # in the processes of a model in several parts
            # The environment variable alone comes too late for a torch that was imported earlier.
            torch.set_num_threads(int(os.environ[_THREADS]))
        elif not has_threads:
            del os.environ[_THREADS]
        for architecture in model_config(self.settings.folder).get("architectures", []):
            # Known classes are otherwise inspected in a child process that imports vLLM once more.
            if architecture in ModelRegistry.models:
                ModelRegistry.register_model(architecture, ModelRegistry.models[architecture].load_model_cls())
        _hand_over_whole_prompts()
        self._llm = LLMEngine.from_vllm_config(engine_config(self.settings, on_cpu=on_cpu), disable_log_stats=True)
        for name in _NOISY:  # behind the start, which resets levels
            logging.getLogger(name).setLevel(logging.ERROR)
        self._llm.set_weight_version(str(self.settings.version))
        self._adapters = VllmAdapters(self._llm)
        self._refusals = (ValueError, UnidentifiedImageError, VLLMClientError)
        self._params = {}

    @property
    def max_prompt(self) -> int:
        """Tokens that a prompt may have."""
        settings = self.settings
        return max_prompt(settings.policy, min(settings.cutoff_len, settings.max_model_len))

    def _sampling(self, temperature: float) -> "SamplingParams":
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        policy = self.settings.policy
        chosen: dict[str, Any] = {"temperature": 0.0}
        if temperature > 0:
            chosen = {
                "temperature": temperature,
                "top_p": policy.top_p,
                "top_k": max(policy.top_k, 0),
                "min_p": policy.min_p,
            }
        return SamplingParams(
            **chosen,
            max_tokens=policy.max_new_tokens,
            stop_token_ids=sorted(self.tokenizer.stop_tokens),
            logit_bias=dict.fromkeys(self.tokenizer.suppressed, _SUPPRESSED),
            logprobs=0,
            flat_logprobs=True,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    def prepare(self, tokens: list[int], screenshots: Sequence[Screenshot]) -> Any:
        """Turns a prompt with one placeholder a screenshot into the engine's input. May run beside `step`, one at a time.

        Raises:
            PromptRefused: the prompt is longer than the model allows, or a screenshot is none.
            PolicyError: vLLM cannot read a file that it needs, or is busy with new weights for too long.
        """
        prompt: dict[str, Any] = {"prompt_token_ids": tokens}
        try:
            if screenshots:
                # PIL decodes lazily: a screenshot that is known by its name is not decoded again, nor are its pixels hashed.
                prompt["multi_modal_data"] = {"image": [Image.open(BytesIO(screenshot.data)) for screenshot in screenshots]}
                prompt["multi_modal_uuids"] = {"image": [sha256(screenshot.data).hexdigest() for screenshot in screenshots]}
            # With the processor's own cache nothing depends on the order in which prompts reach the engine.
            with self._at_home():
                return self._llm.renderer.render_cmpl([prompt], skip_mm_cache=True)[0]
        except self._refusals as error:
            raise PromptRefused(f"vLLM refuses a prompt of {len(tokens)} tokens: {error}") from error
        except OSError as error:
            raise PolicyError(f"vLLM cannot prepare a prompt of {len(tokens)} tokens: {error}") from error

    @contextmanager
    def _at_home(self) -> Iterator[None]:
        """Within it vLLM looks for its processor in the model's own folder. Whoever waits longer than an answer may take waits
        no more, so that a worker whose engine hangs over new weights can end."""
        if not self._looking_up.acquire(timeout=min(self.settings.policy.vllm_timeout, threading.TIMEOUT_MAX)):
            raise PolicyError("vLLM is still reading new weights, and prepares no prompt meanwhile")
        try:
            yield
        finally:
            self._looking_up.release()

    def submit(self, request_id: str, prepared: Any, *, temperature: float) -> str:
        """Queues a prepared prompt; returns the id to abort it by.

        Raises:
            PromptRefused: by the engine.
        """
        if temperature not in self._params:
            self._params[temperature] = self._sampling(temperature)
        try:
            internal: str = self._llm.add_request(
                request_id, prepared, self._params[temperature], lora_request=self._adapters.newest
            )
        except self._refusals as error:
            raise PromptRefused(f"vLLM refuses the request: {error}") from error
        return internal

    def abort(self, internal_id: str) -> None:
        self._llm.abort_request([internal_id], internal=True)

    @property
    def busy(self) -> bool:
        return bool(self._llm.has_unfinished_requests())

    @property
    def num_computed(self) -> int:
        """Tokens so far of the requests that are worked on: a step that changes it has computed something."""
        return sum(request.num_computed_tokens for request in self._llm.engine_core.engine_core.scheduler.running)

    def gauges(self) -> dict[str, float]:
        """Requests that the scheduler has begun and that wait for it, and the share of the key-value cache that is in use. May
        be called beside `step`: numbers are only read."""
        scheduler = self._llm.engine_core.engine_core.scheduler
        num_running, num_waiting = scheduler.get_request_counts()
        return {
            "engine_running": float(num_running),
            "engine_waiting": float(num_waiting),
            "kv_cache_share": float(scheduler.get_kv_cache_usage()),
        }

    def step(self) -> "list[RequestOutput]":
        """One step of the engine; what finished in it."""
        return [output for output in self._llm.step() if output.finished]

    def load(self, folder: Path, version: PolicyVersion) -> "list[RequestOutput]":
        """Replaces the weights in place; returns what finished meanwhile.

        Requests in flight are kept. Where the weights are adapters, they finish under those they began with. Otherwise their
        keys, values and screenshot features are computed anew under the new weights, and every cache that depends on weights
        is emptied (a screenshot seen before would otherwise end the engine).

        Raises:
            ConfigurationError: adapters where whole models are expected, or the other way round.
        """
        require_adapters(folder, self.settings.lora)
        if self.settings.lora.active:
            return self._adapters.load(folder, version, self.step)
        core = self._llm.engine_core.engine_core
        core.pause_scheduler("keep", clear_cache=False)
        finished: list[RequestOutput] = []
        while core.batch_queue:
            finished.extend(self.step())
        core.pause_scheduler("keep", clear_cache=True)
        core.collective_rpc("apply_model", args=(_forget_expert_kernels,))
        self._reload(folder)
        core.collective_rpc("apply_model", args=(_repack_heads,))
        core.set_weight_version(str(version))
        core.resume_scheduler()
        return finished

    def _reload(self, folder: Path) -> None:
        """vLLM goes on to look for its processor where the weights came from, which need not be there for longer: no prompt
        is prepared meanwhile."""
        config = self._llm.model_config
        before = config.model, config.model_weights, config.revision
        with self._looking_up:
            self._llm.engine_core.engine_core.collective_rpc("reload_weights", kwargs={"weights_path": str(folder)})
            config.model, config.model_weights, config.revision = before

    def generation(self, output: "RequestOutput", *, temperature: float) -> Generation:
        completion = output.outputs[0]
        tokens = tuple(completion.token_ids)
        return Generation(
            text=self.tokenizer.decode(tokens),
            finish_reason=completion.finish_reason or "",
            prompt_tokens=tuple(output.prompt_token_ids or ()),
            completion_tokens=tokens,
            logprobs=tuple(completion.logprobs.logprobs),
            versions=adapter_spans(output) or _spans(completion),
            temperature=temperature,
        )

    def close(self) -> None:
        self._llm.renderer.shutdown()
        self._llm.engine_core.shutdown()


def _spans(completion: Any) -> tuple[VersionSpan, ...]:
    return tuple(
        VersionSpan(start=span.start, end=span.end, version=PolicyVersion(int(span.version)))
        for span in completion.weight_versions or ()
    )


def _hand_over_whole_prompts() -> None:
    """vLLM 0.32 hands a request over without the screenshots that its prefix cache covers, and never hands them over later: a
    request that is begun anew, for new weights or for want of memory, would end the engine."""
    from vllm.v1.core.sched import output

    def whole(features: Any, *_: object, **__: object) -> Any:
        return features

    output.strip_covered_mm_data = whole


def _forget_expert_kernels(model: Any) -> None:
    """vLLM 0.32 packs experts on a CPU only when it makes their kernel: reloaded beside an old one, they would be read as if
    they were packed."""
    from vllm.platforms import current_platform

    for layer in model.modules() if current_platform.is_cpu() else ():
        if getattr(layer, "quant_method", None) is not None and hasattr(layer.quant_method, "moe_kernel"):
            layer.quant_method.moe_kernel = None


def _repack_heads(model: Any) -> None:
    """A tied head has no weights of its own in a checkpoint, so vLLM 0.32 reloads it without packing it anew: on CPU it would
    silently keep computing with the old ones."""
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

    for layer in model.modules():
        if isinstance(layer, ParallelLMHead):
            layer.quant_method.process_weights_after_loading(layer)
