"""Makes what a simulated run starts from, where it is missing: task files, and the folder that stands for version 0."""

import os
import zlib
from pathlib import Path

import msgspec

from ops.simulation.browser import NAME
from ops.simulation.hostility import NAME as HOSTILE
from ops.simulation.hostility import HostileSuite

_NUM_TASKS = 1000


def ensure_task_file(file: Path, *, num_tasks: int = _NUM_TASKS) -> Path:
    """Writes a task file unless there is one."""
    lines = [msgspec.json.encode(_task(index, file.stem)) + b"\n" for index in range(num_tasks)]
    return _ensure(file, b"".join(lines))


def ensure_demo_task_file(file: Path, *, num_tasks: int, hostile_every: int = 0) -> Path:
    """The same for pages that a real browser plays: of the demo suite, and one in `hostile_every` of the hostile one."""
    lines = [msgspec.json.encode(_demo_task(index, file.stem, hostile_every)) + b"\n" for index in range(num_tasks)]
    return _ensure(file, b"".join(lines))


def ensure_model(folder: Path) -> Path:
    """Writes a folder that stands for the first policy, unless there is one."""
    _ensure(folder / "config.json", msgspec.json.encode({"model_type": NAME}))
    return folder


def _task(index: int, suite: str) -> dict[str, object]:
    return {
        "task_id": f"{suite}-{index:05d}",
        "task_name": "Click until the page is done",
        "domain": NAME,
        "subdomain": suite,
        "website": f"{NAME}:page?task={suite}-{index}",
        "difficulty": 1,
        "evaluator_reference": "the page says that it is done",
        "definite_answer": None,
    }


def _demo_task(index: int, split: str, hostile_every: int) -> dict[str, object]:
    page = f"demo:click_button?seed={zlib.crc32(f'{split}-{index}'.encode())}"
    if hostile_every and index % hostile_every == hostile_every - 1:
        hostile = HostileSuite().pages
        page = f"{HOSTILE}:{hostile[index // hostile_every % len(hostile)]}"
    return {**_task(index, split), "task_name": "Click the button that the page asks for", "website": page}


def _ensure(file: Path, content: bytes) -> Path:
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        # Feeders that start together write the same bytes, each whole.
        partial = file.with_name(f"{file.name}.{os.getpid()}")
        partial.write_bytes(content)
        partial.replace(file)
    return file
