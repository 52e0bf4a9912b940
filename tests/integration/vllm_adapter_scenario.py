"""One real vLLM engine that gets adapters while it answers, told as JSON on standard output. Run as a child, since vLLM
changes its process.

Arguments: folder of the base model (version 0), folders of the adapters of versions 1, 2 and 3.
"""

import json
import sys
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from agents.vllm_arguments import VllmSettings
from agents.vllm_engine import VllmEngine
from schemas.errors import EngineFailed
from schemas.ids import PolicyVersion
from tests.deadlines import HANGS_S
from tests.integration.vllm_scenario import POLICY, Story, load_behind
from tests.support.training.lora_runs import LORA

NUM_EACH = 3
"""Requests that are sent before each new version."""


async def tell(story: Story, adapters: list[Path]) -> None:
    engine = story.engine
    await story.say("base", 0, temperature=0.0)
    async with anyio.create_task_group() as group:
        for version, folder in enumerate(adapters, start=1):
            send(group, story, version - 1)
            await load_behind(engine, 3, folder, PolicyVersion(version), taken=NUM_EACH)
            story.facts[f"loaded {version}"] = sorted(engine._core._llm.list_loras())
        send(group, story, len(adapters))
    await story.say("newest", 0, temperature=0.0)
    story.facts["version"] = engine.version


def send(group: TaskGroup, story: Story, version: int) -> None:
    for index in range(NUM_EACH):
        # The same screenshots for every version, so that a feature kept from another one would be seen.
        group.start_soon(story.say, f"{version} in flight {index}", index)


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
    engine._thread.join(HANGS_S)
    return {"generations": story.generations, "facts": story.facts}


if __name__ == "__main__":
    told = anyio.run(main, Path(sys.argv[1]), [Path(argument) for argument in sys.argv[2:]])
    print("\n" + json.dumps(told))
