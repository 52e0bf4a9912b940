"""What a policy is shown, and how it samples: each function takes a configuration and says what is done, where it is done."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from msgspec import structs

from agents.action_space import ActionSpace
from agents.context import Round, build_window
from agents.fitting import max_prompt
from agents.prompts import system_prompt
from agents.vllm_arguments import VllmSettings, engine_arguments
from agents.vllm_core import VllmCore
from bus.context import WorkerContext
from bus.presence import Status
from bus.subjects import Subjects
from ops.roles import policy
from ops.run.folder import RunFolder
from ops.run.joining import RoleRun
from schemas.config import Config
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import Role
from tests import builders

SUBJECTS = Subjects(builders.RUN)
_PATCH = pytest.MonkeyPatch


def answer_shown_again(config: Config) -> object:
    task = builders.task()
    thinking = structs.replace(builders.step_request(task, 0), response="<think>a</think>b")
    window = build_window(
        task,
        [Round(builders.observation(task, 0), thinking)],
        builders.observation(task, 1),
        context=config.context_config,
        model=config.model_config,
    )
    return window.messages[2].content


def asks_for_memory(config: Config) -> object:
    return "Memory:" in system_prompt(config.model_config.prompt_version, ActionSpace.of(config.context_config))


def names_targets_by_number(config: Config) -> object:
    return "element_id" in system_prompt(config.model_config.prompt_version, ActionSpace.of(config.context_config))


def prompt_room(config: Config) -> object:
    return max_prompt(config.policy_config, config.algorithm_config.cutoff_len)


def vllm_settings(config: Config) -> VllmSettings:
    """As the policy role composes them; the trainer has announced nothing."""

    async def newest(_bus: object, _subjects: object, sources: Any, **_: object) -> tuple[Path, PolicyVersion]:
        return sources.base, PolicyVersion(0)

    async def composed() -> object:
        run = RoleRun(
            RunFolder(Path(config.save_path)),
            config,
            WorkerContext(cast(Any, None), SUBJECTS, Status(Role.POLICY, WorkerId("p"))),
        )
        return await policy._engine(run, await policy._weight_sources(run))

    with _PATCH.context() as patch:
        patch.setattr("agents.vllm_engine.VllmEngine", lambda settings, **_: settings)
        patch.setattr("agents.starting_weights.starting_weights", newest)
        return cast(VllmSettings, anyio.run(composed))


def weights_loaded(config: Config) -> object:
    return vllm_settings(config).folder.name


def engine_sequences(config: Config) -> object:
    return engine_arguments(vllm_settings(config), on_cpu=False)["max_num_seqs"]


def sampling(name: str) -> Callable[[Config], object]:
    """What vLLM is told of one parameter."""

    def told(config: Config) -> object:
        vllm, parameters = ModuleType("vllm"), ModuleType("vllm.sampling_params")
        vllm.SamplingParams = dict  # type: ignore[attr-defined]
        parameters.RequestOutputKind = SimpleNamespace(FINAL_ONLY=0)  # type: ignore[attr-defined]
        tokenizer = SimpleNamespace(stop_tokens=(), suppressed=())
        with _PATCH.context() as patch:
            patch.setitem(sys.modules, "vllm", vllm)
            patch.setitem(sys.modules, "vllm.sampling_params", parameters)
            told: Any = VllmCore(vllm_settings(config), cast(Any, tokenizer))._sampling(config.policy_config.temperature)
        return told[name]

    return told


def endpoint_patience(config: Config) -> object:
    from agents.openai_engine import OpenAIEngine

    with _PATCH.context() as patch:
        patch.setenv(config.policy_config.api_key_env_var, "key")
        return OpenAIEngine(config.policy_config)._client.timeout
