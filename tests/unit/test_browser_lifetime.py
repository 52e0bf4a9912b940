"""When a browser is replaced, what its processes are, and which of them is at fault: by value."""

import os
import subprocess
from pathlib import Path

import psutil
import pytest

from browser_workers.chromium.process.executable import sandboxed
from browser_workers.chromium.process.launch import arguments
from browser_workers.chromium.process.memory import MIB, machine_mib, pss_mib
from browser_workers.chromium.process.process_monitor import broken, stopped_pages, suspects
from browser_workers.chromium.process.processes import Part, ProcessTree, Seen, part_of
from browser_workers.chromium.process.retirement import Lifetime
from schemas.browser_config import BrowserConfig
from schemas.env_config import EnvConfig

LIFETIME = Lifetime(max_age_s=3000.0, max_episodes=1000, max_memory_mib=4096.0)


@pytest.mark.parametrize(
    ("age_s", "num_episodes", "memory_mib", "reason"),
    [
        (2999.0, 999, 4095.0, ""),
        (3000.0, 0, 0.0, "it is 50.0 min old"),
        (0.0, 1000, 0.0, "it has played 1,000 episodes"),
        (0.0, 0, 4096.4, "it uses 4,096 MiB"),
    ],
)
def test_a_lifetime_is_over(age_s: float, num_episodes: int, memory_mib: float, reason: str) -> None:
    assert LIFETIME.over(age_s=age_s, num_episodes=num_episodes, memory_mib=memory_mib) == reason


def test_a_lifetime_is_as_configured_or_half_of_the_memory() -> None:
    env = EnvConfig(instance_lifetime_max=2.0)
    assert Lifetime.of(BrowserConfig(max_memory_mb=100, max_episodes=7), env) == Lifetime(120.0, 7, 100.0)
    assert Lifetime.of(BrowserConfig(), env).max_memory_mib == machine_mib() / 2
    assert Lifetime(120.0, 0, 100.0).over(age_s=0.0, num_episodes=10**9, memory_mib=0.0) == ""


GROUPS = {
    "0::/jobs/one": {"sys/fs/cgroup/jobs/one/memory.max": "max", "sys/fs/cgroup/jobs/memory.max": str(64 * MIB)},
    "4:memory:/jobs": {"sys/fs/cgroup/memory/jobs/memory.limit_in_bytes": str(64 * MIB)},
}


@pytest.mark.parametrize(("group", "files"), GROUPS.items(), ids=["v2", "v1"])
def test_a_control_group_bounds_the_memory(tmp_path: Path, group: str, files: dict[str, str]) -> None:
    for name, text in ({"proc/self/cgroup": f"9:name=systemd:/\n{group}"} | files).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    assert machine_mib(tmp_path) == 64.0


def test_without_control_groups_the_machine_bounds_the_memory(tmp_path: Path) -> None:
    assert machine_mib(tmp_path) == psutil.virtual_memory().total / MIB


def test_the_share_of_memory_or_all_of_it(tmp_path: Path) -> None:
    pid = os.getpid()
    (tmp_path / str(pid)).mkdir()
    (tmp_path / str(pid) / "smaps_rollup").write_text("5500-7ff [rollup]\nRss:  9000 kB\nPss:    2048 kB\nPss_Anon:  1 kB\n")
    assert pss_mib(pid, tmp_path) == 2.0
    (tmp_path / str(pid) / "smaps_rollup").unlink()
    assert pss_mib(pid, tmp_path) == pytest.approx(psutil.Process().memory_info().rss / MIB, rel=0.05)
    assert 0 < pss_mib(pid) <= psutil.Process().memory_info().rss / MIB


@pytest.mark.parametrize(
    ("command_line", "parent", "part"),
    [
        ("chrome --user-data-dir=/tmp/x --headless", Part.DRIVER, Part.BROWSER),
        ("chrome_crashpad_handler --database=/tmp/x", Part.BROWSER, Part.OTHER),
        ("chrome --type=zygote --user-data-dir=/tmp/x", Part.BROWSER, Part.ZYGOTE),
        ("chrome --type=zygote", Part.ZYGOTE, Part.FORKED),
        ("chrome --type=renderer --x", Part.FORKED, Part.PAGE),
        ("chrome --type=utility --utility-sub-type=network.mojom.NetworkService", Part.BROWSER, Part.NETWORK),
        ("chrome --type=utility --utility-sub-type=audio.mojom.AudioService", Part.BROWSER, Part.OTHER),
    ],
)
def test_what_a_process_is(command_line: str, parent: Part, part: Part) -> None:
    assert part_of(command_line.split(), parent) is part


ESSENTIAL = {
    Part.DRIVER: "the browser's driver ended while it was in use",
    Part.BROWSER: "the browser ended while it was in use",
    Part.ZYGOTE: "the browser's zygote ended while it was in use",
    Part.NETWORK: "the browser's network process ended while it was in use",
}


def test_only_what_all_depends_on_breaks_the_browser() -> None:
    before = {number: Seen(part, 10.0) for number, part in enumerate(Part)}
    assert broken({}, before) == broken(before, before) == ""
    assert broken(before, {}) == ESSENTIAL[Part.DRIVER]
    for number, part in enumerate(Part):
        now = {pid: seen for pid, seen in before.items() if pid != number}
        assert broken(before, now) == ESSENTIAL.get(part, "")


@pytest.mark.parametrize(("part", "is_broken"), [(Part.DRIVER, True), (Part.PAGE, False), (Part.OTHER, False)])
def test_what_stands_still_in_two_looks_counts(part: Part, is_broken: bool) -> None:
    runs, stopped = {1: Seen(part, 10.0)}, {1: Seen(part, 10.0, stopped=True)}
    for before, now in ((runs, stopped), (stopped, runs), ({}, stopped)):
        assert broken(before, now) == ""
        assert stopped_pages(before, now) == []
    assert bool(broken(stopped, stopped)) == is_broken
    assert stopped_pages(stopped, stopped) == ([1] if part is Part.PAGE else [])


def test_only_pages_are_suspects() -> None:
    now = {1: Seen(Part.PAGE, 99.0), 2: Seen(Part.PAGE, 101.0), 3: Seen(Part.BROWSER, 500.0)}
    assert suspects(now, 100.0) == [2]
    assert suspects(now, float("inf")) == []


def test_a_tree_does_not_follow_a_number_to_another_process() -> None:
    tree = ProcessTree(psutil.Process())
    assert tree.look()[os.getpid()].part is Part.DRIVER
    known = tree._known[os.getpid()]
    tree._known[os.getpid()] = type(known)(known.process, known.part, known.born + 1)
    assert os.getpid() not in tree.look()


def test_what_a_process_is_is_said_once_it_has_its_own_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right after its fork it shows none, or that of the browser."""
    network = ["chrome", "--type=utility", "--utility-sub-type=network.mojom.NetworkService"]
    browser = ["chrome", "--user-data-dir=/tmp/x"]
    with subprocess.Popen(["sleep", "60"]) as child:
        shown: dict[int, list[str]] = {}
        monkeypatch.setattr(psutil.Process, "cmdline", lambda process: shown.get(process.pid, browser))
        tree = ProcessTree(psutil.Process())
        for command_line, part in (([], None), (browser, None), (network, Part.NETWORK), ([], Part.NETWORK)):
            shown[child.pid] = command_line
            seen = tree.look(full=True).get(child.pid)
            assert (seen and seen.part) is part
        child.kill()


def test_the_sandbox_is_on_unless_root_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for user, on in ((0, False), (1000, True)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert sandboxed() is on


def test_the_heap_is_bounded_where_the_page_is() -> None:
    assert "--js-flags=--max-old-space-size=1024" in arguments((400, 300), 512)
    assert not [text for text in arguments((400, 300), 0) if "js-flags" in text]
    assert "--window-size=400,300" in arguments((400, 300), 0)
    assert not [text for text in arguments((400, 300), 512) if "sandbox" in text]
