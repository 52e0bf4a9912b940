"""Says what a run or an archive comes to, as tables and a page."""

import argparse
from pathlib import Path

from ops.commands.arguments import add_source
from ops.commands.execution import interruptible

EXAMPLE = """\
millrace report runs/mine
millrace report runs/mine/archive --rubric rubric_v1 --out out/report"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for page, figures and charts (default: SOURCE/report)")
    parser.add_argument("--rubric", help="whose verdicts count (default: the run's own)")
    parser.add_argument("--split", choices=("train", "eval"), help="only episodes of this split")
    parser.add_argument(
        "--since", metavar="TIME", help="only episodes that ended since then (2026-01-31T12:00) or so long ago (2h)"
    )
    parser.add_argument("--until", metavar="TIME", help="only episodes that ended before")
    parser.add_argument("--whole", action="store_true", help="show every table here too, not in the page alone")


@interruptible
async def run(options: argparse.Namespace) -> int:
    from schemas.extras import require_extra

    require_extra("pyarrow", "archive")
    from ops.analysis.report.reporting import report_on
    from ops.analysis.report.selection import Selection, moment_s
    from ops.console.output_folder import require_output
    from schemas.messages import Split

    selection = Selection(
        split=Split(options.split) if options.split else None,
        since_s=moment_s("--since", options.since),
        until_s=moment_s("--until", options.until),
    )
    source = options.source.resolve()
    out = options.out.resolve() if options.out else source / "report"
    require_output(out)
    return await report_on(source, out, rubric=options.rubric, selection=selection, whole=options.whole)
