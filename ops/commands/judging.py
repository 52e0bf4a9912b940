"""The commands about judges: judge stored trajectories again, and find out how far a judge can be trusted."""

import argparse
from pathlib import Path

from ops.commands.arguments import add_overrides, add_run_dir
from ops.commands.execution import interruptible, worker_name
from ops.commands.listing import Commands

_REJUDGE_EXAMPLE = """\
millrace rejudge --run-dir runs/mine judge_config.judge=rubric_v1
millrace rejudge --run-dir runs/mine judge_config.judge=rubric_v1 \\
    judge_config.label=large openai_config.model=large-model"""
_CALIBRATE_EXAMPLE = """\
millrace calibrate runs/mine --template labels.jsonl
millrace calibrate runs/mine --rubric rubric_v1 --labels labels.jsonl \\
    --json out/rubric_v1.json
millrace calibrate runs/mine --rubric rubric_v1-large --against rubric_v1"""


def add_commands(commands: Commands) -> None:
    rejudge = commands.add(
        "rejudge",
        "judge every stored trajectory by another judge, beside the old judgements",
        _rejudge,
        example=_REJUDGE_EXAMPLE,
    )
    add_run_dir(rejudge)
    add_overrides(rejudge)
    rejudge.set_defaults(role="rejudge", name=None)
    calibrate = commands.add(
        "calibrate", "compare a judge with labels of people, or with another judge", _calibrate, example=_CALIBRATE_EXAMPLE
    )
    calibrate.add_argument("source", type=Path, metavar="SOURCE", help="folder of a run or an archive")
    calibrate.add_argument("--rubric", help="the judge in question: whose stored judgements are compared")
    truth = calibrate.add_mutually_exclusive_group(required=True)
    truth.add_argument("--labels", type=Path, metavar="FILE", help="JSON lines with episode and success")
    truth.add_argument("--against", metavar="RUBRIC", help="another rubric, whose verdicts are taken for true")
    truth.add_argument("--template", type=Path, metavar="FILE", help="write a file of labels to fill in instead")
    calibrate.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too, with a picture beside it")


@interruptible
async def _rejudge(options: argparse.Namespace) -> int:
    from ops.commands.rejudge import main
    from schemas.ids import WorkerId

    return await main(options.run_dir.resolve(), options.overrides, WorkerId(worker_name(options)))


def _calibrate(options: argparse.Namespace) -> int:
    if options.template is not None and (options.rubric is not None or options.json is not None):
        options.parser.error("--template takes neither --rubric nor --json")
    if options.template is None and options.rubric is None:
        options.parser.error("--rubric is missing: name the judge that is in question")
    return _calibrate_now(options)


@interruptible
async def _calibrate_now(options: argparse.Namespace) -> int:
    from ops.run.extras import require_extra

    require_extra("pyarrow", "archive")
    from ops.commands.calibrate import against_labels, against_rubric, template

    source = options.source.resolve()
    if options.template is not None:
        return await template(source, options.template.resolve())
    out = options.json.resolve() if options.json else None
    if options.labels is not None:
        return await against_labels(source, options.rubric, options.labels, out)
    return await against_rubric(source, options.rubric, options.against, out)
