"""Policy and trainer load onto a GPU one after the other, whatever each calls it; without locks, as they come."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from structlog.testing import capture_logs

from agents import starting_weights, vllm_engine
from ops.processes.role_process import millrace_environment
from ops.roles import gpu_locks, nvml, policy
from ops.roles.gpu_locks import alone_on, alone_on_own
from schemas.config import Config
from schemas.ids import PolicyVersion
from schemas.policy_config import PolicyConfig
from tests.deadlines import HANGS_S
from tests.support.gpu_driver import DRIVER

Pause = Callable[[Callable[[], None]], list[int]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the locks are."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"millrace-gpus-{os.getuid()}"


@pytest.fixture
def at_pause(monkeypatch: pytest.MonkeyPatch) -> Pause:
    """What is done where it waits, in place of waiting; the list grows by an entry each time."""

    def given(act: Callable[[], None]) -> list[int]:
        paused: list[int] = []

        def pause() -> None:
            paused.append(len(paused))
            act()

        monkeypatch.setattr(gpu_locks, "_pause", pause)
        return paused

    return given


def opened(*gpus: str) -> ExitStack:
    with ExitStack() as stack:
        stack.enter_context(alone_on(gpus))
        return stack.pop_all()


def never() -> None:
    raise AssertionError("it must not wait")


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("1", ("GPU-b",)),
        ("GPU-b,0", ("GPU-b", "GPU-a")),
        ("MIG-c", ("MIG-c",)),
        (None, ("GPU-a", "GPU-b", "MIG-c")),
        ("", ()),
        ("-1", ()),
    ],
)
def test_a_gpu_has_one_name_however_it_is_asked_for(visible: str | None, expected: tuple[str, ...]) -> None:
    assert nvml.names(DRIVER, visible) == expected
    assert nvml.names(None, visible) == ()


def test_one_at_a_time_loads_onto_a_gpu_and_says_once_that_it_waits(at_pause: Pause) -> None:
    first = opened("GPU-a")
    paused = at_pause(lambda: first.close() if len(paused) == 3 else None)
    with capture_logs() as logs, alone_on(("GPU-a",)):
        assert len(paused) == 3
    assert [entry["event"] for entry in logs] == ["gpu_awaited"]


def test_another_gpu_waits_for_nobody(at_pause: Pause) -> None:
    paused = at_pause(never)
    with alone_on(("GPU-a",)), alone_on(("GPU-b", "MIG-c")):
        pass
    with alone_on(("GPU-b", "GPU-a")):
        assert not paused


def test_who_waits_for_one_of_several_has_none(at_pause: Pause) -> None:
    """As a model in two parts, and a trainer whose ranks wait for each other: nobody is waited for who waits."""
    second = opened("GPU-b")

    def act() -> None:
        assert len(paused) == 1, "what is not held is had at once"
        opened("GPU-a").close()
        second.close()

    paused = at_pause(act)
    with alone_on(("GPU-a", "GPU-b")):
        assert paused == [0]


def test_a_process_that_is_killed_lets_go(tmp_path: Path, at_pause: Pause) -> None:
    program = """
import time
from ops.roles.gpu_locks import alone_on
with alone_on(("GPU-a",)):
    print("held", flush=True)
    time.sleep(3600)
"""
    environment = {**millrace_environment(), "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"

        def act() -> None:
            process.send_signal(signal.SIGKILL)
            process.wait(HANGS_S)

        paused = at_pause(act)
        with alone_on(("GPU-a",)):
            assert paused == [0]


def test_a_process_that_was_forked_meanwhile_keeps_nobody_waiting(at_pause: Pause, monkeypatch: pytest.MonkeyPatch) -> None:
    inherited: list[int] = []
    open_ = os.open

    def opened_twice(*arguments: Any) -> int:
        file = open_(*arguments)
        inherited.append(os.dup(file))
        return file

    at_pause(never)
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", opened_twice)
        opened("GPU-a").close()
    opened("GPU-a").close()
    assert len(inherited) == 1
    os.close(inherited[0])


def test_it_waits_for_no_longer_than_a_model_takes(at_pause: Pause, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_locks, "_LONGEST_S", -1.0)
    at_pause(never)
    with capture_logs() as logs, alone_on(("GPU-a",)), alone_on(("GPU-a",)):
        pass
    assert [entry["event"] for entry in logs] == ["gpu_awaited", "gpu_not_locked"]


def no_locks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", cannot)


def no_folder(folder: Path, _: pytest.MonkeyPatch) -> None:
    folder.write_text("somebody's")


@pytest.mark.parametrize("lacks", [no_locks, no_folder])
def test_where_no_lock_can_be_had_it_goes_on_without(
    lacks: Callable[[Path, pytest.MonkeyPatch], None], folder: Path, monkeypatch: pytest.MonkeyPatch, at_pause: Pause
) -> None:
    lacks(folder, monkeypatch)
    at_pause(never)
    with capture_logs() as logs, alone_on(("GPU-a",)), alone_on(("GPU-a",)):
        pass
    assert [entry["event"] for entry in logs] == ["gpu_not_locked"] * 2


def test_without_a_gpu_there_are_no_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.roles.nvml._LIBRARY", "libno-such-driver.so")
    with alone_on_own(slice(1))():
        assert not folder.exists()


@pytest.mark.anyio
async def test_waiting_in_a_thread_of_the_event_loop_s_ends_when_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, pause = anyio.Event(), gpu_locks._pause

    def said() -> None:
        anyio.from_thread.run_sync(waits.set)
        pause()

    monkeypatch.setattr(gpu_locks, "_LOOK_S", 0.01)
    monkeypatch.setattr(gpu_locks, "_pause", said)
    with alone_on(("GPU-a",)), anyio.fail_after(HANGS_S):
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, opened, "GPU-a")
            await waits.wait()
            group.cancel_scope.cancel()


@pytest.mark.anyio
async def test_a_policy_and_a_training_rank_on_one_gpu_wait_for_each_other(
    at_pause: Pause, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ops.roles import deepspeed_trainer

    monkeypatch.setattr(nvml, "loaded", lambda: DRIVER)
    given: list[Callable[[], AbstractContextManager[None]]] = []

    async def version_0(*_: object, **__: object) -> tuple[Path, PolicyVersion]:
        return Path(), PolicyVersion(0)

    def engine(_: object, *, while_loading: Callable[[], AbstractContextManager[None]]) -> Any:
        given.append(while_loading)

    monkeypatch.setattr(starting_weights, "starting_weights", version_0)
    monkeypatch.setattr(vllm_engine, "VllmEngine", engine)
    context: Any = SimpleNamespace(bus=None, subjects=None, worker="policy-1")
    config = Config(policy_config=PolicyConfig(vllm_args={"tensor_parallel_size": 2}))
    run: Any = SimpleNamespace(context=context, config=config)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,GPU-b,MIG-c")
    await policy._engine(run, Any)  # type: ignore[arg-type]
    (of_policy,) = given
    for visible, local, waits in (("GPU-b", None, True), ("MIG-c,1", "1", True), ("MIG-c,1", "0", False), ("0", "0", True)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        monkeypatch.delenv("LOCAL_RANK", raising=False)
        if local is not None:
            monkeypatch.setenv("LOCAL_RANK", local)
        of_rank = deepspeed_trainer._alone_on_own_gpu()
        for one, other in ((of_policy, of_rank), (of_rank, of_policy)):
            first = ExitStack()
            first.enter_context(one())
            paused = at_pause(first.close)
            with other():
                assert bool(paused) == waits, (visible, local)
            first.close()
