"""What one real vLLM engine after another answers, told as JSON on standard output. Run as a child, since vLLM changes its
process.

Argument: as JSON, for each engine the folder of its first model (version 0), that of its second (version 1), and the precision
that it calculates in.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import anyio
import msgspec

from agents.engine import ChatMessage, GenerationRequest
from agents.vllm_arguments import VllmSettings
from agents.vllm_engine import VllmEngine
from schemas.ids import PolicyVersion
from schemas.messages import Screenshot
from schemas.policy_config import PolicyConfig
from tests import builders
from tests.deadlines import HANGS_S
from tests.support.agents import tiny_models

Precision = Literal["float32", "bfloat16"]
SIZES = ((160, 210), (300, 120))
POLICY = PolicyConfig(max_new_tokens=16, temperature=1.0, top_p=1.0, top_k=0, max_num_seqs=8, max_model_len=1024)


def shown(*seeds: int) -> tuple[Screenshot, ...]:
    """Of two sizes by turns."""
    return tuple(tiny_models.screenshot(seed, *SIZES[seed % 2]) for seed in seeds)


def request(*seeds: int) -> GenerationRequest:
    users = (ChatMessage("user", ("Task: click the button\n", each)) for each in shown(*seeds))
    return GenerationRequest(messages=tuple(users), observation=builders.observation(builders.task()), temperature=1.0)


async def answers(folder: str, later: str, dtype: Precision) -> list[object]:
    policy = replace(POLICY, dtype=dtype)
    settings = VllmSettings(
        folder=Path(folder), version=PolicyVersion(0), policy=policy, cutoff_len=1024, max_screenshots=2, seed=7
    )
    said: list[object] = []
    async with VllmEngine(settings) as engine:
        for seeds in ((0,), (1, 2)):
            said.append(msgspec.to_builtins(await engine.generate(request(*seeds))) | {"screenshots": seeds})
        await engine.load(Path(later), PolicyVersion(1))
        for seeds in ((0,), (2, 3)):
            said.append(msgspec.to_builtins(await engine.generate(request(*seeds))) | {"screenshots": seeds})
    engine._thread.join(HANGS_S)
    return said


async def main(engines: list[tuple[str, str, Precision]]) -> list[list[object]]:
    told = []
    for engine in engines:
        with anyio.fail_after(HANGS_S):
            told.append(await answers(*engine))
    return told


if __name__ == "__main__":
    print("\n" + json.dumps(anyio.run(main, json.loads(sys.argv[1]))))
