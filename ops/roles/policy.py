"""Runs a policy worker: which engine answers, and where its weights come from."""

import os
import zlib
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from agents.engine import Engine
from agents.serving import away_outside
from agents.weight_sources import WeightSources
from agents.worker import PolicyWorker
from ops.run.joining import Post
from schemas.config import Config
from schemas.errors import ConfigurationError
from schemas.ids import PolicyVersion


async def answer(post: Post) -> None:
    config = post.config
    post.status.state = "loading"
    sources = _weight_sources(post)
    async with away_outside(post.bus, post.subjects, post.worker), await _engine(post, sources) as engine:
        worker = PolicyWorker(
            bus=post.bus,
            subjects=post.subjects,
            worker=post.worker,
            status=post.status,
            bus_config=config.bus_config,
            policy_config=config.policy_config,
            context_config=config.context_config,
            model_config=config.model_config,
            engine=engine,
            sources=sources,
        )
        await worker.run()


def _weight_sources(post: Post) -> WeightSources:
    bus, policy, base = post.config.bus_config, post.config.policy_config, None
    is_here = bus.weights == "path" or _is_model(policy.base_model)
    if policy.engine == "vllm" and not policy.checkpoint_path and is_here:
        base = _base_model(post.config)
    return WeightSources(post.bus, post.subjects, bus, cache=post.folder.weights, base=base)


async def _engine(post: Post, sources: WeightSources) -> AbstractAsyncContextManager[Engine]:
    policy = post.config.policy_config
    match policy.engine:
        case "simulated":
            from ops.simulation.broken_weights import says_broken
            from ops.simulation.engine import SimulatedEngine

            return SimulatedEngine(post.config.simulation_config, says_broken(post.folder.path, post.worker))
        case "openai":
            from agents.openai_engine import OpenAIEngine

            return OpenAIEngine(policy)
        case "oracle":
            from agents.action_space import ActionSpace
            from agents.fitting import max_prompt
            from agents.oracle_engine import OracleEngine

            return OracleEngine(
                _base_model(post.config),
                prompt_version=post.config.model_config.prompt_version,
                max_prompt=max_prompt(policy, post.config.algorithm_config.cutoff_len),
                space=ActionSpace.of(post.config.context_config),
            )
        case "vllm":
            from agents.starting_weights import starting_weights
            from agents.vllm_core import VllmSettings
            from agents.vllm_engine import VllmEngine

            folder, version = Path(policy.checkpoint_path), PolicyVersion(0)
            if not policy.checkpoint_path:
                folder, version = await starting_weights(post.bus, post.subjects, sources)
            settings = VllmSettings(
                folder=folder,
                version=version,
                policy=policy,
                cutoff_len=post.config.algorithm_config.cutoff_len,
                max_pictures=post.config.context_config.num_rounds + 1,
                seed=zlib.crc32(f"{post.config.feeder_config.seed}-{post.worker}-{os.getpid()}".encode()),
                lora=post.config.trainer_config.lora,
            )
            return VllmEngine(settings)


def _base_model(config: Config) -> Path:
    folder = Path(config.policy_config.base_model)
    if not _is_model(config.policy_config.base_model):
        raise ConfigurationError(
            f"policy_config.base_model is {config.policy_config.base_model!r}: write the path of a model folder "
            "(config.json, safetensors, tokenizer and processor files); nothing is downloaded"
        )
    return folder


def _is_model(folder: str) -> bool:
    return folder != "" and (Path(folder) / "config.json").is_file()
