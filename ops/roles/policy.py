"""Runs a policy worker: which engine answers, and where its weights come from."""

import os
import zlib
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio.to_thread

from agents.engine import Engine
from agents.serving import away_outside
from agents.weight_sources import WeightSources
from agents.worker import PolicyWorker
from ops.roles.gpu_locks import alone_on_own
from ops.run.base_models import model_here, starting_model
from ops.run.joining import RoleRun
from schemas.config import Config


async def answer(run: RoleRun) -> None:
    config = run.config
    run.context.status.state = "loading"
    sources = await _weight_sources(run)
    async with away_outside(run.context.bus, run.context.subjects, run.context.worker), await _engine(run, sources) as engine:
        worker = PolicyWorker(run.context, config, engine=engine, sources=sources)
        await worker.run()


async def _weight_sources(run: RoleRun) -> WeightSources:
    bus, policy, base = run.config.bus_config, run.config.policy_config, None
    if policy.engine == "vllm":
        # One that is not here comes over the bus, where that is how weights come.
        base = model_here(policy.starting_model) if bus.weights == "bus" else await _starting_model(run.config)
    return WeightSources(run.context.bus, run.context.subjects, bus, cache=run.folder.weights, base=base)


async def _engine(run: RoleRun, sources: WeightSources) -> AbstractAsyncContextManager[Engine]:
    policy = run.config.policy_config
    match policy.engine:
        case "simulated":
            from ops.simulation.broken_weights import says_broken
            from ops.simulation.engine import SimulatedEngine

            return SimulatedEngine(run.config.simulation_config, says_broken(run.folder.path, run.context.worker))
        case "openai":
            from agents.openai_engine import OpenAIEngine

            return OpenAIEngine(policy)
        case "oracle":
            from agents.action_space import ActionSpace
            from agents.fitting import max_prompt
            from agents.oracle_engine import OracleEngine

            return OracleEngine(
                await _starting_model(run.config),
                model=run.config.model_config,
                max_prompt=max_prompt(policy, run.config.algorithm_config.cutoff_len),
                space=ActionSpace.of(run.config.context_config),
            )
        case "vllm":
            from agents.starting_weights import starting_weights
            from agents.vllm_arguments import VllmSettings
            from agents.vllm_engine import VllmEngine

            adapters = run.config.trainer_config.lora.active and run.config.feeder_config.learns
            folder, version = await starting_weights(run.context.bus, run.context.subjects, sources, adapters=adapters)
            settings = VllmSettings(
                folder=folder,
                version=version,
                policy=policy,
                cutoff_len=run.config.algorithm_config.cutoff_len,
                max_screenshots=run.config.context_config.num_rounds + 1,
                seed=zlib.crc32(f"{run.config.feeder_config.seed}-{run.context.worker}-{os.getpid()}".encode()),
                lora=run.config.trainer_config.lora,
            )
            return VllmEngine(settings, while_loading=alone_on_own(slice(policy.num_parts)))


async def _starting_model(config: Config) -> Path:
    return await anyio.to_thread.run_sync(starting_model, config.policy_config, abandon_on_cancel=True)
