"""One real vLLM engine that gets adapters while it answers, told as JSON on standard output. Run as a child, since vLLM
changes its process.

Arguments: folder of the base model (version 0), folders of the adapters of versions 1, 2 and 3.
"""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from agents.vllm_arguments import VllmSettings
from agents.vllm_engine import VllmEngine
from schemas.errors import EngineFailed
from schemas.ids import PolicyVersion
from tests.deadlines import HANGS_S
from tests.integration.vllm_scenario import POLICY, Story, stepped
from tests.support.training.lora_runs import LORA

NUM_EACH = 3
"""Requests that are sent before each new version."""


async def tell(story: Story, adapters: list[Path]) -> None:
    engine = story.engine
    await story.say("base", 0, temperature=0.0)
    async with anyio.create_task_group() as group:
        for version, folder in enumerate(adapters, start=1):
            await send(group, story, version - 1)
            await stepped(engine, 3)
            await engine.load(folder, PolicyVersion(version))
            story.facts[f"loaded {version}"] = sorted(engine._core._llm.list_loras())
        await send(group, story, len(adapters))
    await story.say("newest", 0, temperature=0.0)
    story.facts["version"] = engine.version


async def send(group: TaskGroup, story: Story, version: int) -> None:
    """Returns when the engine has taken the requests."""
    core, taken, left = story.engine._core, anyio.Event(), [NUM_EACH]
    submit = core.submit

    def counted(request_id: str, prepared: Any, *, temperature: float) -> str:
        internal = submit(request_id, prepared, temperature=temperature)
        left[0] -= 1
        if left[0] == 0:
            story.engine._loop.call_soon_threadsafe(taken.set)
        return internal

    core.submit = counted  # type: ignore[method-assign]
    for index in range(NUM_EACH):
        # The same screenshots for every version, so that a feature kept from another one would be seen.
        group.start_soon(story.say, f"{version} in flight {index}", index)
    await taken.wait()
    core.submit = submit  # type: ignore[method-assign]


async def main(base: Path, adapters: list[Path]) -> dict[str, object]:
    settings = VllmSettings(
        folder=base, version=PolicyVersion(0), policy=POLICY, cutoff_len=1024, max_screenshots=5, seed=7, lora=LORA
    )
    async with VllmEngine(settings) as engine:
        story = Story(engine, base)
        with anyio.fail_after(HANGS_S):
            await tell(story, adapters)
            try:
                await engine.load(base, PolicyVersion(4))
            except EngineFailed as error:
                story.facts["refusal"] = str(error)
    return {"generations": story.generations, "facts": story.facts}


if __name__ == "__main__":
    told = anyio.run(main, Path(sys.argv[1]), [Path(argument) for argument in sys.argv[2:]])
    print("\n" + json.dumps(told))
