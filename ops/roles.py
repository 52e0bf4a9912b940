"""Composition of the roles: which concrete parts each worker is made of. Heavy packages load with the role that needs them."""

import os
import zlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from bus.address import ServerAddress
from bus.jetstream import JetStreamBus, connect
from bus.ports import Bus
from bus.presence import Status, presence
from bus.server import address_of, server_process
from bus.server.locate import address_for as locate
from bus.subjects import Subjects
from ops.control.service import exit_code, reachable
from ops.run_folder import RunFolder
from ops.streams import create_streams
from schemas.bus_config import BusConfig
from schemas.config import Config
from schemas.errors import BusUnavailable, ConfigurationError
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import Role

if TYPE_CHECKING:
    from agents.engine import Engine
    from agents.weight_sources import WeightSources
    from browser_workers.browser import Browser
    from browser_workers.suites.suite import Suite
    from judges.judge import Judge
    from judges.worker import JudgeWorker

_log = structlog.get_logger()


@dataclass(frozen=True)
class Post:
    """Everything that a worker has before its own parts are built."""

    folder: RunFolder
    config: Config
    bus: Bus
    subjects: Subjects
    worker: WorkerId
    status: Status


async def run_role(role: Role, run_dir: Path, config: Config, worker: WorkerId) -> int:
    """Runs one role until it is cancelled, drained, or its work is complete. Returns the exit code."""
    folder = RunFolder(run_dir)
    if role is Role.SERVER:
        await _serve(folder, config)
        return 0
    if role is Role.TRAINER and int(os.environ.get("RANK", "0")) > 0:
        from ops.training import follow_rank_0

        await follow_rank_0(config)
        return 0
    subjects = subjects_of(config)
    async with (
        join(folder, config, role=role.value, name=worker, works=True) as bus,
        presence(bus, subjects, role, worker) as status,
        reachable(bus, subjects, status),
    ):
        await _work(role, Post(folder, config, bus, subjects, worker, status))
    return exit_code(status.drain)


async def _work(role: Role, post: Post) -> None:
    match role:
        case Role.FEEDER:
            await post.status.drain.unless(partial(_feed, post))  # it holds nothing that the streams do not say
        case Role.BROWSER:
            await _browse(post)
        case Role.POLICY:
            await _answer(post)
        case Role.JUDGE:
            await _judge(post)
        case Role.TRAINER:
            await _train(post)
        case Role.ARCHIVER:
            await post.status.drain.unless(partial(_archive, post))  # its next begins behind the last part it wrote
        case _:
            raise ConfigurationError(f"there is no worker for the role {role.value}")


def subjects_of(config: Config) -> Subjects:
    return Subjects(config.bus_config.run, config.bus_config.num_shards)


def runs_of(bus: BusConfig) -> tuple[BusConfig, ...]:
    """Every run that the run folder's own server has an account for, this one first."""
    return (bus, *(replace(bus, run=guest) for guest in bus.guest_runs))


@asynccontextmanager
async def join(folder: RunFolder, config: Config, *, role: str, name: str, works: bool = False) -> AsyncIterator[JetStreamBus]:
    """Connects to the run's server or cluster with the key of one role (`bus.access.Access`). Creates nothing.

    `works`: as the worker of this name, which hands back at once what it held when it was killed.

    Raises:
        ConfigurationError: the role's key is not here, or the server's address cannot be used.
        BusUnavailable: no server answers.
        NotPermitted: the server refuses the key.
    """
    address = address_for(folder, config.bus_config, role)
    holdings = folder.holdings(name) if works else None
    async with connect(address, subjects_of(config), config.bus_config, name=name, holdings=holdings) as bus:
        yield bus


def address_for(folder: RunFolder, bus: BusConfig, role: str) -> ServerAddress:
    """Where the run's server or cluster is, with the key of one role. Raises `ConfigurationError`."""
    return locate(folder.server, bus, role)


async def _serve(folder: RunFolder, config: Config) -> None:
    bus = config.bus_config
    if bus.url:
        raise ConfigurationError("bus_config.url names a server of your own: leave it empty to run one here")
    async with server_process(folder.server, runs_of(bus)) as server:
        for run in runs_of(bus):
            await create_streams(address_of(folder.server, run=run.run), run)
        raise BusUnavailable(await server.wait_dead())


async def _feed(post: Post) -> None:
    from ops.run_tasks import tasks_of
    from trainer.feeding.feeder import Feeder

    config, env = post.config, post.config.env_config
    trains, tests = config.feeder_config.mode != "eval", config.feeder_config.tests
    feeder = Feeder(
        bus=post.bus,
        subjects=post.subjects,
        rubric=config.bus_config.trained_rubric,
        worker=post.worker,
        status=post.status,
        feeder=config.feeder_config,
        env=env,
        objective=config.objective_config,
        train_tasks=tasks_of(config, env.train_tasks) if trains else (),
        test_tasks=tasks_of(config, env.test_tasks) if tests else (),
    )
    await feeder.run()


async def _browse(post: Post) -> None:
    from browser_workers.worker import BrowserWorker

    config = post.config
    opened, suites = _browser(config)
    async with opened as browser:
        worker = BrowserWorker(
            bus=post.bus,
            subjects=post.subjects,
            worker=post.worker,
            status=post.status,
            bus_config=config.bus_config,
            env_config=config.env_config,
            browser_config=config.browser_config,
            browser=browser,
            suites=suites,
        )
        await worker.run()


def _browser(config: Config) -> "tuple[AbstractAsyncContextManager[Browser], dict[str, Suite]]":
    """The browser, and the task suites whose pages it can open."""
    match config.browser_config.engine:
        case "simulated":
            from ops.simulation.browser import NAME, SimulatedBrowser, SimulatedSuite

            return SimulatedBrowser(config.simulation_config), {NAME: SimulatedSuite()}
        case "playwright":
            from browser_workers.chromium.browser import PlaywrightBrowser
            from ops.suites import task_suites

            return PlaywrightBrowser(config.browser_config, config.env_config, config.context_config), task_suites()


async def _answer(post: Post) -> None:
    from agents.serving import away_outside
    from agents.worker import PolicyWorker

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


def _weight_sources(post: Post) -> "WeightSources":
    from agents.weight_sources import WeightSources

    bus, policy, base = post.config.bus_config, post.config.policy_config, None
    is_here = bus.weights == "path" or _is_model(policy.base_model)
    if policy.engine == "vllm" and not policy.checkpoint_path and is_here:
        base = _base_model(post.config)
    return WeightSources(post.bus, post.subjects, bus, cache=post.folder.weights, base=base)


async def _engine(post: Post, sources: "WeightSources") -> "AbstractAsyncContextManager[Engine]":
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


async def _judge(post: Post) -> None:
    from ops.judging import open_judge

    async with open_judge(post) as judge:
        await judge_worker(post, judge).run()


def judge_worker(post: Post, judge: "Judge") -> "JudgeWorker":
    from judges.worker import JudgeWorker

    return JudgeWorker(
        bus=post.bus,
        subjects=post.subjects,
        worker=post.worker,
        status=post.status,
        bus_config=post.config.bus_config,
        env_config=post.config.env_config,
        judge_config=post.config.judge_config,
        judge=judge,
    )


async def _train(post: Post) -> None:
    match post.config.trainer_config.engine:
        case "simulated":
            from ops.simulation.training import train as simulate

            await simulate(post)
        case "deepspeed":
            from ops.training import train

            await train(post)


async def _archive(post: Post) -> None:
    from ops.extras import require_extra

    require_extra("pyarrow", "archive")
    from ops.archive.archive_command import follow

    await follow(post)
