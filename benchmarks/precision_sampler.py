"""The sampler's side of `benchmarks.precision`: one vLLM in bf16 that loads model after model and answers drawn pages.

python -m benchmarks.precision_sampler JOBS ANSWERS     files of JSON lines: what to do, and what came of it
"""

import sys
from pathlib import Path

import anyio
import msgspec

from agents.engine import Generation, GenerationRequest
from agents.vllm_arguments import VllmSettings
from agents.vllm_engine import VllmEngine
from ops.gpu_check.drawn_pages import Demonstration, demonstrations, prompt
from schemas.ids import EpisodeId, PolicyVersion
from schemas.messages import Observation
from schemas.policy_config import PolicyConfig

_POLICY = PolicyConfig(
    dtype="bfloat16", max_new_tokens=24, temperature=1.0, top_p=1.0, top_k=-1, max_num_seqs=32, max_model_len=512
)


class Job(msgspec.Struct, frozen=True):
    name: str
    folder: str
    seed: int
    """Of the pages."""
    num_answers: int
    temperature: float = 1.0


class Answers(msgspec.Struct, frozen=True):
    job: Job
    generations: tuple[Generation, ...]


def request(shown: Demonstration, temperature: float) -> GenerationRequest:
    seen = Observation(episode=EpisodeId("benchmark"), attempt=1, step=0, screenshot=shown.screenshot, url="", title="")
    return GenerationRequest(messages=prompt(shown), observation=seen, temperature=temperature)


async def answer(jobs: list[Job], into: Path) -> None:
    settings = VllmSettings(
        folder=Path(jobs[0].folder), version=PolicyVersion(0), policy=_POLICY, cutoff_len=512, max_screenshots=1, seed=7
    )
    async with VllmEngine(settings) as engine:
        with into.open("wb") as file:
            for number, job in enumerate(jobs, start=1):
                await engine.load(Path(job.folder), PolicyVersion(number))
                found: dict[int, Generation] = {}
                async with anyio.create_task_group() as group:
                    for index, shown in enumerate(demonstrations(job.num_answers, seed=job.seed)):
                        group.start_soon(_generate, engine, request(shown, job.temperature), found, index)
                file.write(msgspec.json.encode(Answers(job, tuple(found[index] for index in sorted(found)))) + b"\n")


async def _generate(engine: VllmEngine, asked: GenerationRequest, found: dict[int, Generation], index: int) -> None:
    found[index] = await engine.generate(asked)


def main() -> None:
    jobs = [msgspec.json.decode(line, type=Job) for line in Path(sys.argv[1]).read_bytes().splitlines()]
    anyio.run(answer, jobs, Path(sys.argv[2]))


if __name__ == "__main__":
    main()
