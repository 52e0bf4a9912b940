"""A policy worker of a real run whose engine answers by the browser benchmark's schedule."""

import argparse
from pathlib import Path

import anyio

from agents.engine import Generation, GenerationRequest, Weightless
from agents.rendering import render_action
from agents.weight_sources import WeightSources
from agents.worker import PolicyWorker
from benchmarks.browser_schedule import schedule
from bus.context import WorkerContext
from bus.presence import presence
from ops.config.loading import load_config
from ops.run.folder import RunFolder
from ops.run.joining import join, subjects_of
from ops.run.logs import quiet_logs
from schemas.config import Config
from schemas.ids import EpisodeId, WorkerId
from schemas.messages import Role, VersionSpan

_WORKER = WorkerId("policy-1")


def episode_id(number: int) -> EpisodeId:
    return EpisodeId(f"bench-{number:05d}")


class ScriptedEngine(Weightless):
    """The step of the schedule that the observation's episode and step stand for."""

    async def generate(self, request: GenerationRequest) -> Generation:
        observation = request.observation
        number = int(observation.episode.rpartition("-")[2])
        step = schedule(number)[observation.step]
        text = render_action(step.action, thought=step.kind.value)
        return Generation(
            text=text,
            finish_reason="stop",
            prompt_tokens=(0,),
            completion_tokens=(0,),
            logprobs=(0.0,),
            versions=(VersionSpan(start=0, end=1, version=self.version),),
        )


async def main(run_dir: Path) -> None:
    folder = RunFolder(run_dir)
    config = load_config(folder.config)
    subjects = subjects_of(config)
    async with (
        join(folder, config, role=Role.POLICY.value, name=_WORKER) as bus,
        presence(bus, subjects, Role.POLICY, _WORKER) as status,
    ):
        worker = PolicyWorker(
            WorkerContext(bus, subjects, status),
            Config(
                bus_config=config.bus_config,
                policy_config=config.policy_config,
                context_config=config.context_config,
                model_config=config.model_config,
            ),
            engine=ScriptedEngine(),
            sources=WeightSources(bus, subjects, config.bus_config, cache=folder.weights, base=None),
        )
        await worker.run()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run_dir", type=Path)
    with quiet_logs():
        anyio.run(main, parser.parse_args().run_dir, backend_options={"use_uvloop": True})
