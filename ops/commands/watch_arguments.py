"""The arguments of `millrace watch`, apart from what they need when it runs."""

import argparse
from pathlib import Path

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


def add_arguments(parser: argparse.ArgumentParser, run_dir: Path) -> None:
    parser.add_argument(
        "what", nargs="?", choices=FILTERS, default="trajectories", metavar="STREAM",
        help=f"one of {', '.join(FILTERS)} (default: %(default)s)",
    )  # fmt: skip
    where = parser.add_argument_group("which run")
    where.add_argument("--run-dir", type=Path, metavar="DIR", help=f"folder of the run (default: {run_dir})")
    where.add_argument("--config", metavar="RECIPE", help="recipe or .yaml file that names the run, in place of its folder")
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
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="write the pictures of each record into this folder")
