"""Writes episodes for other tools, as Parquet or JSON."""

import argparse
from pathlib import Path

from ops.commands.arguments import add_source
from ops.commands.execution import interruptible
from schemas.extensions import EXPORTERS
from schemas.extras import require_extra

EXAMPLE = "millrace export runs/mine/archive --format hf --out out/steps --min-reward 0.5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    parser.add_argument(
        "--format",
        metavar="FORMAT",
        required=True,
        help=f"{', '.join(EXPORTERS.builtin)}, or module:name of your own; hf: a dataset folder of Hugging Face; sharegpt: "
        "conversations with screenshots; jsonl: a line per episode",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to be made")
    parser.add_argument("--split", choices=("train", "eval"), help="only episodes of this split")
    parser.add_argument("--min-reward", type=float, metavar="REWARD", help="only episodes that were worth so much")
    parser.add_argument("--rubric", help="whose judgement counts, where there are several")
    parser.add_argument(
        "--leave-out-unchanged", action="store_true", help="leave out steps that did not change the screenshot"
    )


@interruptible
async def run(options: argparse.Namespace) -> int:
    require_extra("pyarrow", "archive")
    EXPORTERS.require_known(options.format)
    from ops.archive.exports.exporting import export_episodes
    from ops.archive.exports.played import Selection
    from schemas.messages import Split

    split = Split(options.split) if options.split else None
    return await export_episodes(
        options.source.resolve(),
        options.out.resolve(),
        format_name=options.format,
        selection=Selection(split=split, min_reward=options.min_reward, rubric=options.rubric),
        leave_out_unchanged=options.leave_out_unchanged,
    )
