"""Puts stored episodes into a run: to be consumed, judged again, or trained on."""

import argparse
from pathlib import Path

from ops.commands.arguments import above_zero, count
from ops.commands.execution import guarded
from ops.replay.request import ReplayRequest, Selection
from schemas.errors import ConfigurationError
from schemas.messages import Split

EXAMPLE = """\
millrace replay runs/quickstart --into runs/copy --speed 10
millrace replay runs/quickstart --into runs/offline --passes 2 --train"""
_OFFLINE_DIR = Path("runs/offline")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, metavar="SOURCE", help="folder of a run, or of an archive")
    parser.add_argument("--into", type=Path, metavar="DIR", help="folder of the run that receives them; made when it is new")
    parser.add_argument("--rejudge", action="store_true", help="leave the judgements out: the run's judge workers judge again")
    parser.add_argument("--split", choices=[split.value for split in Split], help="only this split")
    parser.add_argument("--min-reward", type=float, metavar="R", help="only episodes judged at least so well")
    parser.add_argument("--rubric", help="whose judgements count and are taken; needed where there are several")
    parser.add_argument("--limit", type=count, metavar="N", help="only the first N of those")
    parser.add_argument("--speed", type=_speed, metavar="X", help="times faster than they ended, or max (default: max)")
    parser.add_argument(
        "--train", nargs="*", metavar="KEY=VALUE", help=f"train on them, with these overrides (--into default: {_OFFLINE_DIR})"
    )
    parser.add_argument("--passes", type=count, default=1, metavar="P", help="passes of the training (default: %(default)s)")


@guarded
async def run(options: argparse.Namespace) -> int:
    from ops.config.loading import load_config
    from ops.replay.into_run import main
    from ops.replay.training import main as train

    if options.train is None:
        return await main(request_of(options))
    load_config("offline", options.train)  # what is wrong in itself is said before any server is started
    return await train(request_of(options), num_passes=options.passes, overrides=tuple(options.train))


def request_of(options: argparse.Namespace) -> ReplayRequest:
    """Raises `ConfigurationError` when nobody says where the episodes are to go, or when they are there."""
    trains = options.train is not None
    into = options.into or (_OFFLINE_DIR if trains else None)
    if into is None:
        raise ConfigurationError("replay needs --into DIR, the folder of the run that receives the episodes, or --train")
    if into.resolve() == options.source.resolve():
        raise ConfigurationError(f"{into} holds these episodes already: choose another folder with --into")
    split = Split(options.split) if options.split else Split.TRAIN if trains else None
    return ReplayRequest(
        source=options.source.resolve(),
        into=into.resolve(),
        selection=Selection(split=split, min_reward=options.min_reward, rubric=options.rubric, limit=options.limit),
        rejudge=options.rejudge,
        speed=options.speed,
    )


def _speed(text: str) -> float | None:
    return None if text == "max" else above_zero(text)
