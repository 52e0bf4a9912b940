"""The dependency rule, read from the sources of every package, and what the light parts load."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from ops.cli import COMMANDS
from ops.processes.role_process import millrace_environment
from schemas.extensions import SUITES

_ROOT = Path(__file__).parent.parent.parent
_DOMAIN = ("agents", "browser_workers", "judges", "trainer")
_OURS = {"schemas", "bus", "ops", "tests", *_DOMAIN}
_PORTS = {
    f"bus.{name}"
    for name in (
        "ports",
        "subjects",
        "chain",
        "context",
        "chain_state",
        "settlement",
        "bulkhead",
        "fault",
        "presence",
        "topology",
        "handoff",
        "background",
        "draining",
        "backpressure",
        "retry",
        "trying",
        "evidence",
        "child_process",
        "blocklist",
        "turns",
        "served",
        "server_time",
        "backlog",
        "following",
        "side_by_side",
        "weight_chunks",
        "weight_differences",
        "weight_routes",
        "stored",
        "creation",
        "skipping",
        "lineage",
        "retry",
        "trying",
    )
}
"""What the domain packages may know of the bus: never an adapter, a server or an encoding."""
_FLOORS = (
    "config",
    "console",
    "statistics",
    "pictures",
    "simulation",
    "run",
    "tasks",
    "processes",
    "archive",
    "labels",
    "audit",
    "roles",
    "launch",
    "monitor",
    "web",
    "machine",
    "planning",
    "replay",
    "sft",
    "analysis",
    "drills",
    "quickstart",
    "gpu_check",
    "project",
    "commands",
    "cli",
)
"""The folders of ops, ground first: each knows those before it alone."""
_HEAVY = ("torch", "vllm", "playwright", "transformers", "deepspeed", "numpy", "matplotlib", "PIL", "pyarrow", "datasets")


_MODULES = sorted({command.module for commands in COMMANDS.values() for command in commands})


def _sources(package: str) -> list[Path]:
    return sorted((_ROOT / package).rglob("*.py"))


def _imports(path: Path) -> Iterator[str]:
    """Every module that a file names in an import, also inside functions: `a.b` for `from a import b` of a module b."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            for alias in node.names:
                inner = _ROOT.joinpath(*module.split("."), alias.name)
                is_module = inner.with_suffix(".py").exists() or (inner / "__init__.py").exists()
                yield f"{module}.{alias.name}" if is_module else module


def _ours(package: str) -> Iterator[tuple[str, str]]:
    for path in _sources(package):
        for module in _imports(path):
            if module.partition(".")[0] in _OURS:
                yield str(path.relative_to(_ROOT)), module


def test_every_package_was_found() -> None:
    assert all(_sources(package) for package in _OURS)


def test_schemas_imports_msgspec_and_the_standard_library_only() -> None:
    allowed = {"schemas", "msgspec", *sys.stdlib_module_names}
    named = {(path.name, module) for path in _sources("schemas") for module in _imports(path)}
    assert {(name, module) for name, module in named if module.partition(".")[0] not in allowed} == set()


def test_bus_imports_schemas_only() -> None:
    assert {(path, module) for path, module in _ours("bus") if module.partition(".")[0] not in ("bus", "schemas")} == set()


@pytest.mark.parametrize("package", _DOMAIN)
def test_a_domain_package_knows_the_ports_of_the_bus_and_no_other_package(package: str) -> None:
    def allowed(module: str) -> bool:
        return module.partition(".")[0] in ("schemas", package) or module in _PORTS

    assert {(path, module) for path, module in _ours(package) if not allowed(module)} == set()


def test_no_role_follows_a_stream_without_the_patience_that_outlasts_a_server() -> None:
    """They tail through `bus.following` alone."""
    calls = (
        (path, node) for package in _DOMAIN for path in _sources(package) for node in ast.walk(ast.parse(path.read_text()))
    )
    assert {path.name for path, node in calls if isinstance(node, ast.Attribute) and node.attr == "tail"} == set()


def test_the_domain_and_the_bus_never_import_ops_or_tests() -> None:
    named = {found for package in ("schemas", "bus", *_DOMAIN, "ops") for found in _ours(package)}
    outside = {(path, module) for path, module in named if module.startswith("tests")}
    upwards = {(path, module) for path, module in named if module.startswith("ops") and not path.startswith("ops")}
    assert outside | upwards == set()


def test_no_test_imports_a_benchmark() -> None:
    assert {path.name for path in _sources("tests") if any(name.startswith("benchmarks") for name in _imports(path))} == set()


def test_ops_has_floors_and_nothing_beside_them() -> None:
    ops = _ROOT / "ops"
    folders = {path.name for path in ops.iterdir() if (path / "__init__.py").exists()}
    assert folders == set(_FLOORS) - {"cli"}
    assert {path.name for path in ops.glob("*.py")} == {"__init__.py", "cli.py"}


def test_a_floor_of_ops_knows_those_below_it_alone() -> None:
    upwards = {
        (path, module)
        for path, module in _ours("ops")
        if module.startswith("ops.") and _floor(path.removesuffix(".py").replace("/", ".")) < _floor(module)
    }
    assert upwards == set()


def _floor(module: str) -> int:
    return _FLOORS.index(module.split(".")[1]) if module != "ops.__init__" else -1


@pytest.mark.parametrize("package", ["schemas", "bus", *_DOMAIN, "ops"])
def test_no_modules_import_each_other_in_a_circle(package: str) -> None:
    """Also not inside functions, or for their types alone."""
    graph = {_module(path): {name for name in _imports(path) if name.startswith(package)} for path in _sources(package)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def _module(path: Path) -> str:
    return ".".join(path.relative_to(_ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize(
    "program",
    [
        "import schemas.messages, schemas.config, schemas.ids, schemas.errors",
        "from bus import BEGINNING, NEW, After, Item, Run, Start, Stream, connect",
        "import bus.ports, bus.chain, bus.settlement, bus.topology, bus.presence, bus.jetstream, bus.memory, bus.server",
        "import ops.config.loading; ops.config.loading.load_config('update_online')",
        "import ops.processes.guard, ops.processes.supervisor, ops.monitor.dashboard",
        "import ops.run.folder, ops.run.logs, ops.launch.checks",
        "from ops.cli import main; main(['--help'])",
        f"from ops.commands import {', '.join(_MODULES)}",
        "import ops.launch.node, ops.launch.launching, ops.launch.extras, ops.processes.leaving",
        "import ops.roles.running, ops.run.tasks, judges.worker, ops.roles.judge",
    ],
)
def test_the_light_parts_load_nothing_heavy(program: str) -> None:
    listing = f"""
import atexit, sys
atexit.register(lambda: print("LOADED", *sorted({{name.partition(".")[0] for name in sys.modules}})))
{program}
"""
    done = subprocess.run(
        [sys.executable, "-c", listing],
        capture_output=True, text=True, check=False, cwd="/", env=millrace_environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.splitlines()[-1].removeprefix("LOADED ").split())
    assert loaded.isdisjoint(_HEAVY), loaded & set(_HEAVY)


_BROWSER = "browser_workers.worker, browser_workers.chromium.browser, " + ", ".join(
    f"browser_workers.suites.{each}" for each in SUITES.builtin
)


@pytest.mark.parametrize("parts", [_BROWSER, "trainer.feeding.feeder"])
def test_browsers_and_feeders_load_without_torch(parts: str) -> None:
    program = f"import sys, ops.roles.running, {parts}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd="/", env=millrace_environment(),
    )  # fmt: skip
    assert {"torch", "vllm", "transformers", "deepspeed"}.isdisjoint(done.stdout.split())
