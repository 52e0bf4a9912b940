"""Compares a judge with labels of people, or with another judge, on stored trajectories."""

import argparse
from pathlib import Path

from ops.commands.arguments import add_source, count
from ops.commands.execution import interruptible

EXAMPLE = """\
millrace calibrate runs/mine --template labels.jsonl --sample 100
millrace calibrate runs/mine --rubric rubric_v1 --labels labels.jsonl \\
    --json out/rubric_v1.json
millrace calibrate runs/mine --rubric rubric_v1-large --against rubric_v1
millrace calibrate runs/mine --rubric webjudge_v1 --rubric agenttrek_v1 \\
    --labels human_label.json --agent Operator"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    parser.add_argument(
        "--rubric", action="append", help="the judge in question, whose stored judgements are compared; may be given again"
    )
    truth = parser.add_mutually_exclusive_group(required=True)
    truth.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="JSON lines with episode and success, or labels as Online-Mind2Web or CUAVerifierBench publish them",
    )
    truth.add_argument("--against", metavar="RUBRIC", help="another rubric, whose verdicts are taken for true")
    truth.add_argument("--template", type=Path, metavar="FILE", help="write a file of labels to fill in instead")
    parser.add_argument("--sample", type=count, metavar="N", help="with --template: only N episodes, drawn by chance")
    parser.add_argument("--agent", metavar="NAME", help="whose trajectories these are, where labels are of several agents'")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too, with a picture beside it")


def run(options: argparse.Namespace) -> int:
    if options.template is not None and (options.rubric is not None or options.json is not None):
        options.parser.error("--template takes neither --rubric nor --json")
    if options.sample is not None and options.template is None:
        options.parser.error("--sample belongs to --template")
    if options.template is None and options.rubric is None:
        options.parser.error("--rubric is missing: name the judge that is in question")
    if options.agent is not None and options.labels is None:
        options.parser.error("--agent belongs to --labels")
    if options.json is not None and options.json.suffix.casefold() == ".png":
        options.parser.error(f"--json is {options.json}, and a picture is written beside it: name a file that ends in .json")
    return _calibrate_now(options)


@interruptible
async def _calibrate_now(options: argparse.Namespace) -> int:
    from schemas.extras import require_extra

    require_extra("pyarrow", "archive")
    from ops.analysis.calibration.calibrating import against_labels, against_rubric, template
    from ops.console.output_folder import require_output

    source = options.source.resolve()
    if options.template is not None:
        return await template(source, options.template.resolve(), options.sample)
    out = options.json.resolve() if options.json else None
    if out:
        require_output(out.parent)
    rubrics = tuple(dict.fromkeys(options.rubric))
    if options.labels is not None:
        return await against_labels(source, rubrics, options.labels, options.agent, out)
    return await against_rubric(source, rubrics, options.against, out)
