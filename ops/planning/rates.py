"""How fast a run would go, and what holds it up: each part's steps a second, and the versions of an hour. Pure arithmetic.

An engine answers as fast as its GPUs calculate prompts and read weights and cache for every token (the roofline of Williams et
al. 2009); a rank trains as fast as it multiplies. Both reach a share of their data sheet, `_PREFILL`, `_READ` and `_TRAINED`.
"""

from dataclasses import dataclass

from ops.planning.gpus import Gpu
from ops.planning.memory import Serving, sequences_at_once
from ops.planning.model_size import ModelSize
from ops.planning.plan import Plan

_PREFILL, _READ = 0.45, 0.9
"""Shares of peak: of the arithmetic while prompts are calculated, of the bandwidth while tokens are sampled; as measured on an
H100 (benchmarks/results/gpu_check_h100.json)."""
_PREPARED_S = 0.048
"""Of the host, a prompt with a new screenshot, before it reaches the GPU: one after the other. From the same measurement."""
_TRAINED = 0.43
"""The same in training, what is recomputed included: 0.40 to 0.46 on an H200 (benchmarks/results/gpu_check_h200.json)."""
_FULL = 0.9
"""Of what policies can do: more is not to be had from them by more browsers."""
_ITERATION_S = 0.0014
"""Of each step of an engine, whatever its size; from the same measurement."""
_CPU_S = 0.25
"""Of one core, a browser's step with a screenshot, the bus included (benchmarks/results/browsers.json)."""
_NETWORK = 1.25e9
"""Bytes a second between hosts: ten gigabits."""
_PASSES = 3
"""Forward, and backward, which costs twice as much."""
_RECOMPUTED = 4
"""With the second forward pass of checkpointed activations."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What no configuration says: how long episodes and answers are, and how slow sites are."""

    steps: float = 10.0
    """Of an episode: failed ones have 12.5, successful ones 5.1 on WebGym's tasks (AsyncWebRL)."""
    answer_tokens: int = 300
    text_tokens: int = 1500
    """Of a prompt beside its screenshots: system prompt, task, earlier answers."""
    page_s: float = 3.0
    """Seconds of a step in the browser: the site answers, the page comes to rest, it is captured."""
    most_steps: float = 30.0
    """Of the longest episode, which everything waits for where collecting and training take turns."""


@dataclass(frozen=True, kw_only=True)
class Rates:
    prompt_tokens: int
    policies_steps_s: float
    """Steps a second that all policies do when they are full."""
    steps_s: float
    """Those that are done: as many sessions as there are wait for pages and for answers in turn."""
    cores_steps_s: float
    """That the host's cores do with browsers; 0: they are not known."""
    answer_s: float
    """From a prompt to the answer's last token."""
    steps: float
    """Of a version's episodes."""
    collecting_s: float
    training_s: float
    refresh_s: float
    """Until every policy has the next version: weights pass the network once a policy where they are not on a shared disk."""
    in_turns: bool
    """It collects, then trains."""

    @property
    def version_s(self) -> float:
        busy = (self.collecting_s, self.training_s)
        return sum(busy) + self.refresh_s if self.in_turns else max(busy)

    @property
    def versions_an_hour(self) -> float:
        return 3600 / self.version_s

    @property
    def bottleneck(self) -> str:
        """What would have to be faster, and how."""
        if self.training_s > self.collecting_s:
            return "training: more ranks, or fewer steps a version"
        if 0 < self.cores_steps_s <= self.steps_s:
            return "cores: another node with browsers"
        if self.steps_s > _FULL * self.policies_steps_s:
            return "policies: more of them, or shorter answers and prompts"
        return "browsers: more of them (env_config.server_size, --browsers), as far as cores and memory reach"


def rates(made: Plan, work: Workload) -> Rates | None:
    """None where the GPU's speed is not known, or nothing is collected and trained on."""
    gpu, config = made.machine.gpu, made.config
    if made.training is None or made.serving is None or not gpu.is_known or not made.num_browsers:
        return None
    prompt = prompt_tokens(made, work)
    engine = _Engine(
        made.serving, gpu, prompt, work.answer_tokens, patches=_patches(made), most=config.policy_config.max_num_seqs
    )
    sessions = made.num_browsers * config.env_config.server_size
    in_flight = engine.in_flight(sessions / made.num_policies, page_s=work.page_s)
    answer_s = engine.answer_s(in_flight)
    steps_s = made.num_policies * in_flight / answer_s
    cores_steps_s = made.machine.cores / _CPU_S
    steps = config.env_config.train_tasks_rollout_size * work.steps
    collecting_s = steps / (min(steps_s, cores_steps_s) if cores_steps_s else steps_s)
    in_turns = config.feeder_config.mode == "sync"
    if in_turns:
        collecting_s += (work.most_steps - work.steps) * (work.page_s + answer_s)
    served = made.training.num_served * made.training.dtype_bytes
    return Rates(
        prompt_tokens=prompt,
        policies_steps_s=made.num_policies * engine.most / engine.answer_s(engine.most),
        steps_s=steps_s,
        cores_steps_s=cores_steps_s,
        answer_s=answer_s,
        steps=steps,
        collecting_s=collecting_s,
        training_s=_trained_s(made, gpu, prompt, work, steps),
        refresh_s=served / _NETWORK if config.bus_config.weights == "bus" else served / gpu.bandwidth,
        in_turns=in_turns,
    )


def prompt_tokens(made: Plan, work: Workload) -> int:
    """Of a step in the middle of an episode, as far as the engine's context and training's cut-off reach."""
    config = made.config
    screenshots = (config.context_config.num_rounds + 1) * _patches(made) // made.size.patches_a_token
    most = min(config.policy_config.max_model_len, config.algorithm_config.cutoff_len) - work.answer_tokens
    return max(1, min(most, screenshots + work.text_tokens))


def _patches(made: Plan) -> int:
    """Of a screenshot."""
    browser = made.config.browser_config
    return made.size.patches(browser.viewport_width, browser.viewport_height)


class _Engine:
    """Of one policy."""

    def __init__(self, serving: Serving, gpu: Gpu, prompt: int, answer: int, *, patches: int, most: int) -> None:
        size = serving.size
        self.most = float(max(1, min(most, sequences_at_once(serving, prompt + answer))))
        """Answers at once."""
        self._answer = answer
        self._calculated = serving.num_parts * gpu.flops * _PREFILL
        self._read = serving.num_parts * gpu.bandwidth * _READ
        new = screenshot_flops(size, patches)
        """Of the latest screenshot; those before it are known from the steps before."""
        self._prefill_s = max(_PREPARED_S, (forward_flops(size, prompt, predicted=0) + new) / self._calculated)
        self._size, self._parameter = size, serving.dtype_bytes
        kept = (prompt + answer / 2) * 2 * size.attending_layers * size.key_value * serving.key_value_bytes
        self._cache = kept + 2 * size.state_bytes
        """Bytes that a token of one answer reads, and of states writes."""
        self._token = 2.0 * read_parameters(size, 1)

    def answer_s(self, in_flight: float) -> float:
        """Seconds of an answer among so many: each one's prompt is calculated once while all others wait."""
        weights = read_parameters(self._size, in_flight) * self._parameter
        read = (weights + in_flight * self._cache) / self._read
        return in_flight * self._prefill_s + self._answer * (
            _ITERATION_S + max(read, in_flight * self._token / self._calculated)
        )

    def in_flight(self, sessions: float, *, page_s: float) -> float:
        """Answers at once, of so many sessions that are at a page for `page_s` in between."""
        low, high = 0.0, self.most
        for _ in range(60):
            middle = (low + high) / 2
            if middle * (1 + page_s / self.answer_s(middle)) < sessions:
                low = middle
            else:
                high = middle
        return high


def _trained_s(made: Plan, gpu: Gpu, prompt: int, work: Workload, steps: float) -> float:
    training, algorithm = made.training, made.config.algorithm_config
    assert training is not None
    clones = made.config.objective_config.adv_estimator == "none"
    samples = min(steps, algorithm.positive_samples_to_train) if clones else steps
    passes = _RECOMPUTED if training.checkpoints_activations else _PASSES
    answer = work.answer_tokens
    seen = (made.config.context_config.num_rounds + 1) * screenshot_flops(training.size, _patches(made))
    read = forward_flops(training.size, prompt + answer, predicted=answer)
    flops = training.num_engines * (passes * read + (passes if training.trains_vision else 1) * seen)
    return samples * algorithm.num_train_epochs * flops / (training.num_ranks * gpu.flops * _TRAINED)


def screenshot_flops(size: ModelSize, patches: int) -> float:
    """What seeing one takes: of a 2B model nearly as much as reading a prompt with it does."""
    return patches * size.patch_flops + patches**2 * size.frame_flops


def read_parameters(size: ModelSize, tokens: float) -> float:
    """That so many tokens at once are multiplied with: of experts, those that one of them is sent to, each token to others."""
    missed: float = (1 - size.expert_share) ** tokens
    return size.num_parameters - missed * size.expert_parameters


def forward_flops(size: ModelSize, length: int, *, predicted: int) -> float:
    """Of one sequence: 2 a parameter and token in layers, causal attention, and the output layer at `predicted` tokens."""
    text = size.token_flops * length + size.squared_flops * length**2
    return text + 2.0 * size.hidden * size.vocabulary * predicted
