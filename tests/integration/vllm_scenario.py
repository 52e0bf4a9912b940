"""What happens to one real vLLM engine, told as JSON on standard output. Run as a child, since vLLM changes its process.

Arguments: folder of model A (version 3), folder of model B (version 4), vLLM's further arguments as JSON.
"""

import json
import shutil
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import psutil

from agents.engine import ChatMessage, Generation, GenerationRequest
from agents.fitting import fitted
from agents.prompts import system_prompt
from agents.vllm_arguments import VllmSettings
from agents.vllm_core import VllmCore
from agents.vllm_engine import VllmEngine
from schemas.errors import PolicyError, PromptRefused
from schemas.ids import PolicyVersion
from schemas.policy_config import PolicyConfig
from tests import builders
from tests.deadlines import HANGS_S
from tests.support.agents import tiny_models

NUM_IN_FLIGHT = 12
POLICY = PolicyConfig(max_new_tokens=24, temperature=0.7, top_p=1.0, top_k=50, max_num_seqs=8, max_model_len=1024)


_TEXT, _LONG_TEXT = "Task: click the button\n", "0" * 150
"""The second is longer than a block of the prefix cache."""


def request(*screenshots: int, temperature: float = POLICY.temperature, text: str = _TEXT) -> GenerationRequest:
    users = (ChatMessage("user", (text, tiny_models.screenshot(seed))) for seed in screenshots)
    messages = (ChatMessage("system", (system_prompt("vanilla"),)), *users)
    return GenerationRequest(messages=messages, observation=builders.observation(builders.task()), temperature=temperature)


class Story:
    def __init__(self, engine: VllmEngine, folder_b: Path) -> None:
        self.engine = engine
        self.folder_b = folder_b
        self.generations: dict[str, dict[str, object]] = {}
        self.facts: dict[str, object] = {}

    async def say(
        self, name: str, *screenshots: int, temperature: float = POLICY.temperature, text: str = _TEXT
    ) -> Generation:
        generation = await self.engine.generate(request(*screenshots, temperature=temperature, text=text))
        self.generations[name] = msgspec.to_builtins(generation) | {"screenshots": screenshots}
        return generation

    async def tell(self) -> None:
        await self.say("before", 0)
        for name in ("greedy 1", "greedy 2"):
            await self.say(name, 0, temperature=0.0)
        await self.say("five screenshots", 0, 1, 2, 3, 4)
        await self.refuse_and_cancel()
        await self.reload_in_flight()
        await self.say("after", 0)
        await self.say("greedy after", 0, temperature=0.0)
        self.facts["version"] = self.engine.version
        processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        connections = [connection for each in processes for connection in each.net_connections()]
        self.facts["listening"] = [c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN]
        self.facts["children"] = len(processes) - 1

    async def refuse_and_cancel(self) -> None:
        try:
            await self.engine.generate(request(0, text="0" * 2000))
        except PolicyError as error:
            self.facts["refusal"] = str(error)
        broken = msgspec.structs.replace(tiny_models.screenshot(0), data=b"no picture")
        asking = replace(request(0), messages=(ChatMessage("user", (broken,)),))
        try:
            await self.engine.generate(asking)
        except PromptRefused as error:
            self.facts["refused_picture"] = str(error)
        windows = [request(0, text="0" * 2000).messages, request(0, text="0" * 1500).messages, request(0).messages]
        shortened = await self.engine.generate(
            replace(request(0), messages=windows[0], shortened=lambda count: windows[count])
        )
        self.facts["num_dropped"] = shortened.num_dropped
        self.facts["shortened_prompt"] = shortened.prompt_tokens
        async with anyio.create_task_group() as group:
            group.start_soon(self.engine.generate, request(5))
            async with standing(self.engine, 3):
                self.facts["gauges"] = self.engine.gauges()
            group.cancel_scope.cancel()

    async def reload_in_flight(self) -> None:
        await self.say("earlier step", 0, 1, text=_LONG_TEXT)
        meanwhile = asked_meanwhile(self.engine._core)
        async with anyio.create_task_group() as group:
            # Weights are held for as long as they are read, and gone afterwards; nothing else is with them.
            with tempfile.TemporaryDirectory() as held:
                only_weights = shutil.copytree(
                    self.folder_b, Path(held) / "b", ignore=shutil.ignore_patterns("*token*", "*proc*")
                )
                for index in range(NUM_IN_FLIGHT):
                    # The first screenshot is in the prefix cache, as those of earlier steps are.
                    group.start_soon(partial(self.say, text=_LONG_TEXT), f"in flight {index}", 0, 1, 100 + index)
                await load_behind(self.engine, 10, only_weights, PolicyVersion(4), taken=4)
            self.facts["refused_meanwhile"] = await anyio.to_thread.run_sync(meanwhile.result)


def seen_computing(core: VllmCore) -> list[bool]:
    """Of each step from now on, whether it can be seen that it computed something."""
    seen, step = list[bool](), core.step

    def watched_step() -> Any:
        before = core.num_computed
        outputs = step()
        seen.append(core.num_computed != before)
        return outputs

    core.step = watched_step  # type: ignore[method-assign]
    return seen


def asked_meanwhile(core: VllmCore) -> Future[str | None]:
    """Has a prompt prepared in the very moment in which vLLM has read new weights; what the refusal says, if there is one."""
    refusal: Future[str | None] = Future()
    told, tokens = fitted(request(0), core.tokenizer, core.max_prompt)

    def prepare() -> None:
        try:
            core.prepare(tokens, told.screenshots)
            refusal.set_result(None)
        except PolicyError as error:
            refusal.set_result(str(error))

    engine: Any = core._llm.engine_core.engine_core
    call = engine.collective_rpc

    def then_prepare(method: str, *args: Any, **options: Any) -> Any:
        found = call(method, *args, **options)
        if method == "reload_weights":
            preparing = threading.Thread(target=prepare)
            preparing.start()
            preparing.join(1.0)  # long enough to be refused; it has to wait for the end of the reading
        return found

    engine.collective_rpc = then_prepare
    return refusal


async def load_behind(engine: VllmEngine, num_steps: int, folder: Path, version: PolicyVersion, *, taken: int = 0) -> None:
    """The engine loads in the midst of what it does: see `standing`."""
    async with anyio.create_task_group() as loading, standing(engine, num_steps, taken=taken):
        loading.start_soon(engine.load, folder, version)
        while engine._commands.empty():  # a task that was just started
            await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def standing(engine: VllmEngine, num_steps: int, *, taken: int = 0) -> AsyncIterator[None]:
    """For the body the engine stands still, when it has made so many more steps and has taken so many more requests."""
    core, stands, goes_on = engine._core, anyio.Event(), threading.Event()
    step, submit = core.step, core.submit
    num_missing, num_left = taken, num_steps

    def counted_submit(request_id: str, prepared: Any, *, temperature: float) -> str:
        nonlocal num_missing
        num_missing -= 1
        return submit(request_id, prepared, temperature=temperature)

    def counted_step() -> object:
        nonlocal num_left
        outputs = step()
        num_left -= 1
        if num_left <= 0 and num_missing <= 0:
            engine._loop.call_soon_threadsafe(stands.set)
            goes_on.wait(HANGS_S)
        return outputs

    core.step, core.submit = counted_step, counted_submit  # type: ignore[method-assign, assignment]
    try:
        await stands.wait()
        yield
    finally:
        core.step, core.submit = step, submit  # type: ignore[method-assign]
        goes_on.set()


async def main(folder_a: Path, folder_b: Path, vllm_args: dict[str, object]) -> dict[str, object]:
    policy = replace(POLICY, vllm_args=vllm_args)
    settings = VllmSettings(
        folder=folder_a, version=PolicyVersion(3), policy=policy, cutoff_len=1024, max_screenshots=5, seed=7
    )
    async with VllmEngine(settings) as engine:
        story = Story(engine, folder_b)
        story.facts["seen_computing"] = seen_computing(engine._core)
        with anyio.fail_after(HANGS_S):
            await story.tell()
    engine._thread.join(HANGS_S)
    story.facts["thread_ended"] = not engine._thread.is_alive()
    return {"generations": story.generations, "facts": story.facts, "core": VllmCore.__name__}


if __name__ == "__main__":
    told = anyio.run(main, Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))
    print("\n" + json.dumps(told))
