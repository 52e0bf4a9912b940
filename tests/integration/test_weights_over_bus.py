"""A policy on a second machine: another folder, no path of the trainer's, the keys of its own role, and a real vLLM.

It begins with the base model and goes on to version 1, both fetched over a real server, while requests are always in flight.
"""

import json
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import msgspec
import numpy as np
import pytest

from bus import chain
from bus.jetstream import connect, create_topology
from bus.ports import Bus
from bus.server import address_of, nats_server
from bus.topology import shared_queues, streams
from ops.config.loading import load_config
from ops.processes.role_process import millrace_command, millrace_environment
from ops.run.folder import RunFolder
from schemas.bus_config import BusConfig
from schemas.ids import PolicyVersion, WorkerId
from schemas.messages import Checkpoint, StepHeld, StepRequest, StepWake
from tests import builders
from tests.contract.backends import SUBJECTS
from tests.deadlines import HANGS_S
from tests.support.agents import tiny_models
from tests.support.training.trainer_world import PlainModel
from trainer.model.model_folder import suppressed_tokens
from trainer.versions.announcements import Announcements
from trainer.versions.checkpoints import hash_files
from trainer.versions.weight_publishing import WeightPublisher

pytestmark = [pytest.mark.anyio, pytest.mark.integration, pytest.mark.timeout(3600)]

CONFIG = BusConfig(run=SUBJECTS.run, weights="bus", max_payload_bytes=2**18, steps_max_age_s=HANGS_S)
"""Chunks of 128 KiB: the tiny model comes in many. Wake-ups wait for a policy that starts."""
NUM_BROWSERS, NUM_ANSWERS = 4, 8
POLICY = (
    "policy_config.top_k=0",
    "policy_config.top_p=1.0",
    "policy_config.dtype=float32",
    "policy_config.max_new_tokens=16",
    "policy_config.max_num_seqs=4",
    "policy_config.max_model_len=1024",
    "context_config.num_rounds=0",
)
_DEADLINE_S = 900.0
"""vLLM's start on a busy machine is most of it."""


@dataclass
class Browsers:
    """Ask one question after the other until enough answers are of the version that is waited for."""

    bus: Bus
    answers: list[tuple[int, StepRequest]] = field(default_factory=list)
    """With the number of the screenshot."""
    num_asked: int = 0
    stopping: bool = False
    _heard: anyio.Event = field(default_factory=anyio.Event)

    async def browse(self) -> None:
        while not self.stopping:
            await self._ask()

    async def answered_by(self, version: int) -> None:
        """Returns when so many answers are of this version alone."""
        while sum({span.version for span in step.versions} == {version} for _, step in self.answers) < NUM_ANSWERS:
            self._heard = anyio.Event()
            await self._heard.wait()

    async def _ask(self) -> None:
        number, self.num_asked = self.num_asked, self.num_asked + 1
        task = builders.task(f"t{number}")
        await chain.admit(self.bus, SUBJECTS, task)
        owner = await chain.EpisodeChain.take(self.bus, SUBJECTS, task, WorkerId("browser"))
        assert isinstance(owner, chain.EpisodeChain)
        async with self.bus.listen(SUBJECTS.live(task.episode, owner.attempt)) as live:
            observation = msgspec.structs.replace(builders.observation(task), screenshot=tiny_models.screenshot(number))
            seq = await owner.observe(observation)
            wake = StepWake(episode=task.episode, attempt=owner.attempt, step=0, observation_seq=seq)
            await self.bus.append(SUBJECTS.steps, SUBJECTS.step_any(task.split, task.episode), wake)
            with anyio.fail_after(_DEADLINE_S):
                answer = await anext(live)
                while isinstance(answer.message, StepHeld):
                    answer = await anext(live)
        assert isinstance(answer.message, StepRequest)
        self.answers.append((number, answer.message))
        self._heard.set()


class OverTheBusAlone(WeightPublisher):
    """Once a version is sent, and before it is announced, its folder is gone."""

    async def send(self, folder: Path, checkpoint: Checkpoint, announced: Sequence[Checkpoint] = ()) -> None:
        await super().send(folder, checkpoint, announced)
        shutil.rmtree(folder)


def second_machine(path: Path, url: str, keys: Path) -> RunFolder:
    """A run's folder with the policy's key, and no model."""
    own = path / "keys"
    own.mkdir(parents=True, mode=0o700)
    shutil.copy2(keys / SUBJECTS.run / "policy.seed", own / "policy.seed")
    settings = ("weights=bus", f"run={SUBJECTS.run}", f"url={url}", f"keys={own}")
    folder = RunFolder(path / "run")
    folder.create(load_config("default", [*POLICY, *(f"bus_config.{each}" for each in settings)]), needed_bytes=0)
    return folder


@asynccontextmanager
async def policy_process(folder: RunFolder, output: Path) -> AsyncIterator[None]:
    """Ends as a person would end it."""
    command = millrace_command(["policy", "--run-dir", str(folder.path), "--name", "policy-1"])
    with output.open("wb") as file:
        process = await anyio.open_process(
            command, env=millrace_environment(), stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
        try:
            yield
            assert process.returncode is None, "it served to the end"
            process.send_signal(signal.SIGTERM)
            with anyio.fail_after(HANGS_S):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()


def logged(folder: RunFolder) -> Iterator[dict[str, object]]:
    for line in (folder.logs / "policy-1.log").read_text().splitlines():
        yield json.loads(line)


async def test_a_policy_elsewhere_serves_the_new_version_and_no_request_fails(tmp_path: Path) -> None:
    trainer, elsewhere = tmp_path / "trainer", tmp_path / "elsewhere"
    for version in (0, 1):
        tiny_models.build(trainer / str(version), seed=3 + version)
    kept = shutil.copytree(trainer, tmp_path / "kept")
    server = trainer / "server"
    async with (
        nats_server(server, [CONFIG], max_payload_bytes=CONFIG.max_payload_bytes) as admin,
        connect(admin, SUBJECTS, CONFIG, name="admin") as bus,
    ):
        await create_topology(bus, streams(SUBJECTS, CONFIG), shared_queues(SUBJECTS, CONFIG, CONFIG.rubrics))
        folder = second_machine(elsewhere, admin.url, server / "keys")
        browsers = Browsers(bus)
        async with (
            connect(address_of(server, role="trainer"), SUBJECTS, CONFIG, name="trainer") as own,
            policy_process(folder, tmp_path / "policy.out"),
            anyio.create_task_group() as group,
        ):
            announcements = Announcements(own, SUBJECTS, OverTheBusAlone(own, SUBJECTS, CONFIG))
            await announcements.begin(trainer / "0", trainer)
            for _ in range(NUM_BROWSERS):
                group.start_soon(browsers.browse)
            with anyio.fail_after(_DEADLINE_S):
                await browsers.answered_by(0)
                await announcements.announce(checkpoint_of(trainer / "1"))
                await browsers.answered_by(1)
            browsers.stopping = True
    assert len(browsers.answers) == browsers.num_asked
    assert {step.finish_reason for _, step in browsers.answers} <= {"stop", "length"}
    events = list(logged(folder))
    assert [event for event in events if event["level"] in ("error", "critical")] == []
    assert [event["version"] for event in events if event["event"] == "weights_fetched"] == [0, 1]
    assert_sampled_by(kept, browsers.answers)


def checkpoint_of(folder: Path) -> Checkpoint:
    return Checkpoint(
        run=SUBJECTS.run,
        version=PolicyVersion(1),
        uri=folder.as_uri(),
        files=hash_files(folder),
        parent=PolicyVersion(0),
        trainer_step=1,
        judged_seq=0,
    )


def assert_sampled_by(models: Path, answers: list[tuple[int, StepRequest]]) -> None:
    """Every token's log-probability is that of the version that is said to have sampled it."""
    plain = {version: PlainModel(models / str(version)) for version in (0, 1)}
    suppressed = suppressed_tokens(models / "0")
    seen, from_other = set[int](), list[float]()
    for number, step in answers[-2 * NUM_ANSWERS :]:
        screenshot = [tiny_models.screenshot(number).data]
        for span in step.versions:
            seen.add(span.version)
            logprobs = plain[span.version].logprobs(step.prompt_tokens, step.completion_tokens, screenshot, suppressed)
            told = np.array(step.logprobs)
            assert np.abs(logprobs - told)[span.start : span.end].mean() < 0.02
            other = plain[1 - span.version].logprobs(step.prompt_tokens, step.completion_tokens, screenshot, suppressed)
            from_other.extend(np.abs(other - told)[span.start : span.end])
    assert 1 in seen
    # Over all of them: a span may be one token, of which both versions think alike.
    assert np.mean(from_other) > 0.02
