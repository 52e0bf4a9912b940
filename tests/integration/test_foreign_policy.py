"""A policy worker in JavaScript, written from docs/messages.md, answers the slots of a run as Millrace's own would."""

import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from msgspec.structs import replace
from playwright._impl._driver import compute_driver_executable

from browser_workers.asking import Asking
from bus import chain
from bus.child_process import start_process
from bus.jetstream import JetStreamBus
from schemas.ids import WorkerId
from schemas.messages import ActionKind, Element, Heartbeat, Role, ServedVersion, ServingState, StepRequest
from tests.builders import WORKER, observation, task
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.runs.running_run import running_run

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
EXAMPLE = Path(__file__).parents[2] / "examples/policy_in_javascript"
NODE = Path(compute_driver_executable()[0])
"""The one that Playwright's driver runs on."""
JS = WorkerId("js-1")
_INSTALL = ("--no-audit", "--no-fund", "--no-package-lock", "--fetch-retries=1", "--fetch-timeout=60000")
_UNREACHABLE = re.compile(
    r"ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ERR_SOCKET_TIMEOUT|EIDLETIMEOUT|EINTEGRITY|\bE5\d\d\b"
    r"|npm (?:error|ERR!) network"
)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as a reader would install it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed, and brings the NATS client for JavaScript")
    folder = tmp_path_factory.mktemp("js") / "policy"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(
        [npm, "install", *_INSTALL], cwd=folder, capture_output=True, text=True, check=False, timeout=HANGS_S
    )
    if done.returncode and (unreachable := _UNREACHABLE.search(done.stderr)):
        pytest.skip(f"npm does not reach its registry ({unreachable[0]})")
    assert done.returncode == 0, done.stderr
    return folder / "policy.js"


@asynccontextmanager
async def serving(policy: Path, run_dir: Path) -> AsyncIterator[Process]:
    """The worker, from its first word to its end."""
    async with await start_process(
        (str(NODE), str(policy), str(run_dir / "server"), SUBJECTS.run, JS), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        with anyio.fail_after(HANGS_S):
            assert await process.stdout.receive() == f"{JS} serves {SUBJECTS.run}\n".encode()
        yield process
        if process.returncode is None:
            process.kill()


async def answers(bus: JetStreamBus, name: str, *seen: tuple[Element, ...]) -> list[StepRequest]:
    """An episode as a browser worker's slot plays it: what was answered to observations with such elements."""
    played = task(name)
    await chain.admit(bus, SUBJECTS, played)
    owner = await chain.EpisodeChain.take(bus, SUBJECTS, played, WORKER)
    assert isinstance(owner, chain.EpisodeChain)
    asking = Asking(bus=bus, subjects=SUBJECTS, chain=owner, resend_s=5.0)
    found = []
    async with bus.listen(SUBJECTS.live(played.episode, owner.attempt)) as live:
        for step, elements in enumerate(seen):
            seq = await owner.observe(replace(observation(played, step), elements=elements))
            record, said = await asking.answer(step, seq, live)
            assert isinstance(said, StepRequest)
            owner.answered(record.seq)
            asking.policy = said.worker
            found.append(said)
    return found


BUTTON = Element(id=7, tag="button", text="button", box=(1, 2, 30, 20))


async def test_a_policy_in_javascript_answers_every_step(policy: Path, tmp_path: Path) -> None:
    async with running_run(tmp_path) as bus, serving(policy, tmp_path) as process:
        with anyio.fail_after(HANGS_S):
            marked, plain, marked_again = await answers(bus, "a", (BUTTON,), (), (BUTTON,))
        assert [each.action.kind for each in (marked, plain, marked_again)] == [ActionKind.CLICK] * 3
        assert (marked.action.element, plain.action.point, marked_again.action.element) == (7, (500.0, 500.0), 7)
        assert (marked.worker, marked.parsed, marked.screenshots, marked_again.screenshots) == (JS, True, (0,), (2,))
        [beat] = await bus.history(SUBJECTS.heartbeats, SUBJECTS.heartbeat(Role.POLICY, JS))
        assert isinstance(beat.message, Heartbeat)
        process.terminate()
        with anyio.fail_after(HANGS_S):
            assert await process.wait() == 0
        left = await bus.last(SUBJECTS.served, SUBJECTS.served_by(JS))
        assert left is not None
        assert isinstance(left.message, ServedVersion)
        assert left.message.state is ServingState.AWAY


async def test_a_killed_one_loses_nothing(policy: Path, tmp_path: Path) -> None:
    played: dict[str, list[int]] = {}

    async def play(bus: JetStreamBus, name: str) -> None:
        played[name] = [each.step for each in await answers(bus, name, *[(BUTTON,)] * 3)]

    async with running_run(tmp_path) as bus, AsyncExitStack() as stack, anyio.create_task_group() as episodes:
        async with serving(policy, tmp_path) as process, bus.tail(SUBJECTS.episodes(0), f"{SUBJECTS.run}.ep.>") as records:
            for number in range(6):
                episodes.start_soon(play, bus, f"e{number}")
            async for record in records:
                if isinstance(record.message, StepRequest):
                    break
            process.kill()
        await stack.enter_async_context(serving(policy, tmp_path))
    assert played == {f"e{number}": [0, 1, 2] for number in range(6)}


def test_it_knows_nothing_of_ours() -> None:
    source = (EXAMPLE / "policy.js").read_text()
    imported = {line.rpartition("from ")[2].strip('";') for line in source.splitlines() if line.startswith("import ")}
    assert imported == {"node:fs", "node:zlib", "@msgpack/msgpack", "@nats-io/transport-node"}
