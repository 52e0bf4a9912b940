"""What a policy's engine does with a model: answers a second, memory, and how soon it serves another version.

    python -m ops.gpu_check.serving MODEL FOLDER PARTS

A process of its own, because vLLM changes the one that it is in.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import anyio
import anyio.to_thread
import torch

from agents.engine import Generation, GenerationRequest
from agents.vllm_arguments import VllmSettings, step_tokens
from agents.vllm_engine import VllmEngine
from ops.gpu_check.drawn_pages import NUM_PAGES, PAGE, demonstrations, prompt
from ops.gpu_check.refreshing import refreshes
from ops.gpu_check.results import SCRATCH, Answers, Serving, Throughput, write
from ops.planning.gpus import GIB, own_gpu
from ops.planning.memory import Serving as Served
from ops.planning.memory import serving_gpu
from ops.planning.model_size import model_size
from schemas.ids import EpisodeId, PolicyVersion
from schemas.messages import Observation
from schemas.policy_config import PolicyConfig

_AT_ONCE = (1, 16, 64)
_SHARE = 0.6
"""Of a GPU's memory: as beside a trainer."""


def policy_config(num_parts: int) -> PolicyConfig:
    return PolicyConfig(
        max_new_tokens=256 if torch.cuda.is_available() else 16,
        max_model_len=4096,
        max_num_seqs=_AT_ONCE[-1],
        temperature=1.0,
        top_p=1.0,
        top_k=-1,
        gpu_memory_utilization=_SHARE,
        vllm_args={"tensor_parallel_size": num_parts} if num_parts > 1 else {},
    )


class Asking:
    """Asks an engine about drawn pages, a different one each time."""

    def __init__(self, engine: VllmEngine) -> None:
        self._engine = engine
        self._shown = demonstrations(sum(2 * number for number in _AT_ONCE), width=PAGE[0], height=PAGE[1])
        self._num_asked = 0

    async def answers(self, number: int) -> list[Generation]:
        found: dict[int, Generation] = {}
        first = self._num_asked
        self._num_asked += number
        async with anyio.create_task_group() as group:
            for index in range(first, first + number):
                group.start_soon(self._ask, index, found)
        return [found[index] for index in sorted(found)]

    async def _ask(self, index: int, found: dict[int, Generation]) -> None:
        one = self._shown[index]
        seen = Observation(episode=EpisodeId("check"), attempt=1, step=0, screenshot=one.screenshot, url="", title="")
        found[index] = await self._engine.generate(GenerationRequest(messages=prompt(one), observation=seen))

    async def throughput(self, at_once: int) -> Throughput:
        began = time.monotonic()
        found = await self.answers(at_once)
        return Throughput(
            at_once,
            len(found),
            sum(len(each.prompt_tokens) for each in found),
            sum(len(each.completion_tokens) for each in found),
            time.monotonic() - began,
        )


async def check(model: Path, folder: Path, num_parts: int) -> Serving:
    policy = policy_config(num_parts)
    settings = VllmSettings(
        folder=model, version=PolicyVersion(0), policy=policy, cutoff_len=policy.max_model_len, max_screenshots=1, seed=1
    )
    free = torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else 0
    began = time.monotonic()
    async with VllmEngine(settings) as engine:
        opened_s = time.monotonic() - began
        asking = Asking(engine)
        if num_parts == 1:
            write(folder, "answers", Answers(tuple(await asking.answers(NUM_PAGES))))
        else:
            await asking.answers(1)
        throughput = tuple([await asking.throughput(number) for number in _AT_ONCE])
        taken = free - torch.cuda.mem_get_info()[0] if free else 0
        found = []
        if num_parts == 1:
            with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=folder) as scratch:
                versions = (Path(scratch) / "v1", Path(scratch) / "v2")
                for version in versions:
                    await anyio.to_thread.run_sync(shutil.copytree, model, version)
                found = await refreshes(Path(scratch), versions, engine.load)
    return Serving(
        device=torch.cuda.get_device_name() if free else "CPU",
        num_parts=num_parts,
        opened_s=opened_s,
        memory_gib=taken / GIB if free else None,
        planned_gib=_planned_gib(model, policy),
        throughput=throughput,
        refreshes=tuple(found),
    )


def _planned_gib(model: Path, policy: PolicyConfig) -> float:
    gpu, size = own_gpu(), model_size(model)
    served = Served(
        size=size,
        dtype_bytes=size.dtype_bytes,
        num_parts=policy.num_parts,
        memory=_SHARE * gpu.memory if gpu is not None else 0.0,
        tokens_a_step=step_tokens(policy, policy.max_model_len),
        key_value_bytes=size.dtype_bytes,
    )
    return serving_gpu(served).total / GIB


def main() -> None:
    model, folder, num_parts = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    write(folder, f"serving-{num_parts}", anyio.run(check, model, folder, num_parts))


if __name__ == "__main__":
    main()
