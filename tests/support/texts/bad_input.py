"""What a person may give a command by mistake: folders, files, keys, ports and models that are none, by kind of argument."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ops.config.loading import load_config
from ops.run.folder import RunFolder

GOOD = "good"
"""A run that was created, and never served."""
KINDS: dict[str, tuple[str, ...]] = {
    "EVERY_RUN": ("none", "file", "empty", "foreign", "torn", "garbage", "blank", "future", "bomb", "huge", "upside-down"),
    "RUN": ("none", "foreign", "torn"),
    "SOURCE": ("none", "garbage", "rotten"),
    "NEW": ("file/below", "torn", "upside-down"),
    "EVERY_CONFIG": (
        *("none.yaml", "nope", "folder.yaml", "garbage.yaml", "torn.yaml", "list.yaml", "blank.yaml"),
        *("unknown.yaml", "wrong.yaml", "loop.yaml", "deep.yaml", "bomb.yaml", "huge.yaml", "missing.yaml"),
    ),
    "CONFIG": ("nope", "torn.yaml", "unknown.yaml"),
    "EVERY_NODE_FILE": ("none.yaml", "folder.yaml", "garbage.yaml", "torn.yaml", "list.yaml", "unknown.yaml", "bomb.yaml"),
    "NODES": ("none.yaml", "unknown.yaml"),
    "FILE": ("none", "garbage.jsonl", "torn.jsonl"),
    "NO_FILE": ("none", "empty"),
    "FULL": ("file", "file/below", "foreign"),
    "FOLDER": ("file", "file/below"),
    "OUT": ("empty", "file/below"),
    "EVERY_KEY": (
        *("nonsense=1", "policy_confg.top_k=1", "policy_config.top_k=[", "policy_config.top_k=many", "bus_config.run=a.b"),
        *("=1", "feeder_config.num_iterations=-1", "policy_config=3", f"bus_config.num_shards={'9' * 400}"),
    ),
    "KEY": ("policy_confg.top_k=1", "bus_config.run=a.b"),
    "MODEL": ("none", "file", "empty", "badmodel", "foreignmodel"),
    "PEM": ("none", "empty", "file"),
    "PORT": (),
    "WORKER": ("a.b", "'a b'"),
    "WORD": ("nonsense",),
}
"""By the word that stands for one; PORT is taken while a box is open. What one place reads for all commands is tried whole
at one of them."""
_BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
_GARBAGE = bytes(range(256))
_HUGE = "x: " + "y" * 2**21


@contextmanager
def box(folder: Path) -> Iterator[str]:
    """Fills a folder with all of them; gives a port that is taken."""
    (folder / "file").write_text("hello\n")
    for name in ("empty", "foreign", "foreign/server", "folder.yaml", "upside-down", "rotten"):
        (folder / name).mkdir()
    (folder / "foreign" / "photo.jpg").write_bytes(_GARBAGE)
    (folder / "rotten" / "archive.json").write_text("{")
    (folder / "upside-down" / "config.yaml").mkdir()
    RunFolder(folder / GOOD).create(load_config("simulation", ["bus_config.run=good"]), needed_bytes=0)
    stored = (folder / GOOD / "config.yaml").read_text()
    for name, content in (
        ("torn", f"{stored[: len(stored) // 2]}\n  [".encode()),
        ("garbage", _GARBAGE),
        ("blank", b""),
        ("future", f"{stored}\nwizard_config: {{hat: 1}}\n".encode()),
        ("bomb", _BOMB.encode()),
        ("huge", _HUGE.encode()),
    ):
        (folder / name).mkdir()
        (folder / name / "config.yaml").write_bytes(content)
    for name, text in (
        *(("torn.yaml", "policy_config: {top_k: [1"), ("list.yaml", "- 1\n"), ("blank.yaml", ""), ("bomb.yaml", _BOMB)),
        *(("unknown.yaml", "defaults: [default]\npolicy_confg: {top_k: 1}\n"), ("loop.yaml", "defaults: [loop]\n")),
        *(("wrong.yaml", "defaults: [default]\npolicy_config: {top_k: many}\n"), ("huge.yaml", _HUGE)),
        *(("deep.yaml", f"a: {'[' * 3000}{']' * 3000}\n"), ("missing.yaml", "defaults: [nowhere]\n")),
        *(
            ("torn.jsonl", '{"task_id": 1, "task_na'),
            ("list.jsonl", "[1]\n"),
            ("deep.jsonl", "[" * 100_000),
            ("blank.jsonl", ""),
        ),
    ):
        (folder / name).write_text(text)
    for name in ("garbage.yaml", "garbage.jsonl"):
        (folder / name).write_bytes(_GARBAGE)
    for name, description in (("badmodel", "{"), ("foreignmodel", '{"model_type": "llava"}')):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(description)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield str(taken.getsockname()[1])


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Of every file and folder in it: its size, and when its content was last changed."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            status = (path := Path(place) / name).lstat()
            found[str(path.relative_to(folder))] = (status.st_size, status.st_mtime_ns) if name in files else (0, 0)
    return found
