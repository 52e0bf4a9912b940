"""Prints a stream of a run as JSON lines, live or to its end."""

import argparse
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import anyio

from bus import BEGINNING, NEW, After, Run, Start, Stream, connect
from bus.consumer.run import Reading
from bus.server import is_served
from ops.commands.arguments import RUN_DIR, add_config, add_run_dir, settle_run
from ops.commands.execution import interruptible
from ops.config.loading import load_config
from ops.console.json_lines import json_lines
from ops.console.output_folder import make_output
from ops.console.record_lines import line
from ops.console.times import time_of
from ops.run.folder import RunFolder
from ops.run.served import served
from schemas.errors import ConfigurationError

EXAMPLE = """\
millrace watch judgements --run-dir runs/mine --verdict success
millrace watch calls --stage criterion_b | jq .message.text
millrace watch trajectories --from beginning --no-follow | jq .message.outcome"""
FILTERS: dict[str, tuple[str, ...]] = {
    "trajectories": ("split", "outcome", "episode", "task", "website", "version", "min_reward", "max_reward"),
    "judgements": (
        "split", "outcome", "episode", "task", "website", "version", "min_reward", "max_reward", "verdict", "rubric",
    ),
    "calls": ("episode", "rubric", "stage"),
    "checkpoints": ("version",),
    "observations": ("episode",),
    "steps": ("episode", "version"),
    "heartbeats": (),
}  # fmt: skip
"""What can be watched, and what it can be filtered by."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", nargs="?", choices=FILTERS, default="trajectories", metavar="STREAM",
        help=f"one of {', '.join(FILTERS)} (default: %(default)s)",
    )  # fmt: skip
    where = parser.add_argument_group("which run")
    add_run_dir(where, settle=settle_run)
    add_config(where, "recipe or .yaml file that names the run, in place of its folder")
    part = parser.add_argument_group("which part")
    part.add_argument(
        "--from", dest="start", metavar="WHERE",
        help="beginning, new, a sequence to read behind, a time, or how long ago (10m, 2h, 1d); default: new, "
        "or beginning with --no-follow or --durable",
    )  # fmt: skip
    part.add_argument("--no-follow", dest="follow", action="store_false", help="end with the newest record there is now")
    part.add_argument("--durable", metavar="NAME", help="go on where the last process of this name came to")
    some = parser.add_argument_group("which records")
    some.add_argument("--split", choices=("train", "eval"))
    some.add_argument("--outcome", action="append", help="may be repeated: answered, done, step_limit, failed, ...")
    some.add_argument("--verdict", action="append", help="may be repeated: success, failure, excluded, error")
    some.add_argument("--rubric", help="judge and version")
    some.add_argument("--stage", help="of a judge's question: blocking, keypoint, criterion_b, criterion_a or reference")
    some.add_argument("--min-reward", type=float, metavar="REWARD")
    some.add_argument("--max-reward", type=float, metavar="REWARD")
    some.add_argument("--website", metavar="PATTERN", help="where episodes start; may hold *")
    some.add_argument("--task", help="its identity, as records carry it")
    some.add_argument("--episode", help="its identity, as records carry it")
    some.add_argument("--version", metavar="N|A-B", help="policy versions, both ends included")
    parser.add_argument(
        "--screenshots", type=Path, metavar="DIR", help="write the screenshots of each record into this folder"
    )


@interruptible
async def run(options: argparse.Namespace) -> int:
    filters = selected(options)
    start = start_of(options.start, whole=not options.follow or options.durable is not None)
    reading = Reading(start=start, follow=options.follow, durable=options.durable)
    folder = anyio.Path(make_output(options.screenshots)) if options.screenshots else None
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(await _opened(options, stack))
        lines = await stack.enter_async_context(json_lines())
        read: Callable[..., Stream[Any]] = getattr(opened, options.what)
        async for item in read(**filters, **reading):
            await lines.write(await line(item, folder))
    return 0


def selected(options: argparse.Namespace) -> dict[str, Any]:
    """The filters that were given. Raises `ConfigurationError` for one that this stream does not have."""
    every = dict.fromkeys(name for names in FILTERS.values() for name in names)
    given = {name: getattr(options, name) for name in every if getattr(options, name) is not None}
    for name in given:
        if name not in FILTERS[options.what]:
            having = ", ".join(what for what, names in FILTERS.items() if name in names)
            raise ConfigurationError(f"{options.what} cannot be chosen by --{name.replace('_', '-')}: only {having} can")
    if "version" in given:
        given["version"] = versions_of(given["version"])
    return given


def versions_of(text: str) -> range:
    """`3`, or `3-7` with both ends."""
    first, dash, last = text.partition("-")
    try:
        versions = range(int(first), int(last if dash else first) + 1)
    except ValueError:
        versions = range(0)
    if not versions:
        raise ConfigurationError(f"--version {text} is no version: write one as 3, or several as 3-7")
    return versions


def start_of(text: str | None, *, whole: bool) -> Start:
    """Where to begin. A time without zone is one of this machine's clock."""
    if text is None:
        return BEGINNING if whole else NEW
    if text in ("beginning", "new"):
        return BEGINNING if text == "beginning" else NEW
    if text.isdigit():
        return After(int(text))
    time = time_of(text)
    if time is None:
        raise ConfigurationError(
            f"--from {text} says no place: write beginning, new, a sequence, 2026-01-31T12:00, or 10m, 2h, 1d for ago"
        )
    return time


async def _opened(options: argparse.Namespace, stack: AsyncExitStack) -> AbstractAsyncContextManager[Run]:
    # Heartbeats are for monitors; a monitor keeps no place, so everything else is read with the key of consumers.
    role = "monitor" if options.what == "heartbeats" else "consumer"
    if options.config is not None:
        config = load_config(options.config, [])
        if config.bus_config.url:
            bus = config.bus_config
            return connect(
                url=bus.url,
                run=bus.run,
                keys=bus.keys,
                ca_file=bus.ca_file,
                credentials_file=bus.credentials_file,
                role=role,
                name="watch",
            )
        run_dir = Path(config.save_path)
    else:
        run_dir = RUN_DIR
    folder = RunFolder((options.run_dir or run_dir).resolve())
    config = folder.load()
    if not options.follow:
        await stack.enter_async_context(served(folder, config))
    elif not config.bus_config.url and not is_served(folder.server):
        raise ConfigurationError(
            f"no server runs for {folder.path}: start the run, or read what it has stored: add --no-follow"
        )
    return connect(folder.path, role=role, name="watch")
