"""Policies that cannot load a version, in whole runs: real role processes and nats-server, simulated engines."""

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from bus.background import background
from ops.monitor.alerts.alert import Condition
from ops.monitor.watch import monitoring
from ops.simulation.broken_weights import broken_weights
from schemas.messages import Checkpoint, Role, ServedVersion, ServingState
from tests.deadlines import HANGS_S
from tests.support.drills.simulated_run import SimulatedRun, simulated_run
from tests.support.polling import until

pytestmark = [pytest.mark.anyio, pytest.mark.integration, pytest.mark.timeout(1800)]
_NUM_VERSIONS, _BATCH = 6, 10
_BOUND = {"sync": 0, "async": 1}


@asynccontextmanager
async def a_run(folder: Path, mode: str, *, num_policies: int) -> AsyncIterator[SimulatedRun]:
    overrides = (
        f"feeder_config.mode={mode}",
        f"feeder_config.max_staleness={_BOUND[mode]}",
        f"feeder_config.num_iterations={_NUM_VERSIONS}",
        f"env_config.train_tasks_rollout_size={_BATCH}",
    )
    crew = {Role.BROWSER: 1, Role.POLICY: num_policies, Role.JUDGE: 1, Role.TRAINER: 1}
    async with simulated_run(folder, overrides, crew) as run:
        yield run


async def until_said(run: SimulatedRun, holds: Callable[[ServedVersion], bool]) -> None:
    async with run.bus.tail(run.subjects.served, run.subjects.everything("served")) as records:
        async for record in records:
            assert isinstance(record.message, ServedVersion)
            if holds(record.message):
                return


def is_unable(said: ServedVersion) -> bool:
    return said.state is ServingState.UNABLE


async def require_fresh(run: SimulatedRun, mode: str) -> None:
    """Every version was made, of episodes within the bound."""
    found = await run.bus.history(run.subjects.checkpoints, run.subjects.everything("checkpoint"))
    versions = [record.message for record in found if isinstance(record.message, Checkpoint)]
    assert [version.version for version in versions] == list(range(_NUM_VERSIONS + 1))
    assert max(version.metrics["staleness_max"] for version in versions[1:]) <= _BOUND[mode]


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_weights_that_are_broken_for_a_moment_stop_no_run(tmp_path: Path, mode: str) -> None:
    async with a_run(tmp_path / "run", mode, num_policies=1) as run:
        with ExitStack() as damage:
            damage.enter_context(broken_weights(tmp_path / "run", "policy-1"))

            async def mend() -> None:
                await until_said(run, is_unable)
                damage.close()

            async with background(mend):
                await run.play(HANGS_S)
        await until_said(run, lambda said: said.state is ServingState.SERVING and said.version == _NUM_VERSIONS)
        await require_fresh(run, mode)


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_a_policy_whose_weights_stay_broken_is_named_and_waited_for_by_nobody(tmp_path: Path, mode: str) -> None:
    with ExitStack() as stack:
        (tmp_path / "run").mkdir()
        async with a_run(tmp_path / "run", mode, num_policies=2) as run:
            stack.enter_context(broken_weights(tmp_path / "run", "policy-1"))
            async with monitoring(run.bus, run.subjects, run.config) as watch:
                await run.play(HANGS_S)
                alerts: list[Condition] = []

                async def is_named() -> bool:
                    alerts[:] = [
                        each.condition for each in watch.conditions_now() if each.condition.key.kind == "policy_behind"
                    ]
                    return bool(alerts)

                await until(is_named)
            await require_fresh(run, mode)
    (alert,) = alerts
    assert alert.key.subject == "policy-1"
    assert "policy-1 cannot load version" in alert.sentence
    assert "does not match its hash" in alert.sentence
