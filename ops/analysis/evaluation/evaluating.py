"""Evaluates one model as asked, seed by seed, and shows and writes what it comes to."""

from pathlib import Path

import anyio.to_thread

from ops.analysis.evaluation.beginning import begin_all
from ops.analysis.evaluation.display import sentences, show
from ops.analysis.evaluation.page import write_page
from ops.analysis.evaluation.plan import Evaluation, Plan, evaluation_of
from ops.analysis.evaluation.playing import evaluate
from ops.analysis.evaluation.request import Request
from ops.analysis.evaluation.result import EvaluationResult, read_result, write_result
from ops.analysis.evaluation.shares import merged
from ops.analysis.evaluation.submission import require_room, write_submission
from ops.archive.opening import open_source
from ops.console.terminal import Console
from ops.run.logs import role_logs


async def evaluate_and_show(request: Request) -> int:
    if request.submission is not None:
        require_room(request.submission)
    evaluation = await anyio.to_thread.run_sync(evaluation_of, request)
    begin_all(evaluation)
    for plan in evaluation.plans:
        write_result(plan.folder.result, await _evaluate(plan))
    result, left = gathered(evaluation)
    file, page = evaluation.folder / "result.json", evaluation.folder / "evaluation.html"
    write_result(file, result)
    write_page(page, result)
    console = Console()
    show(result, console)
    for line in sentences(result):
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    if left:
        said = f"seeds that are not played yet: {', '.join(map(str, left))}"
        console.print(said, soft_wrap=True, highlight=False, markup=False)
    if request.submission is not None:
        said = await _submit(evaluation.plans[0], request.submission)
        console.print(said, soft_wrap=True, highlight=False, markup=False)
    console.print(f"written to {file} and {page}", soft_wrap=True, highlight=False, markup=False)
    return 0


def gathered(evaluation: Evaluation) -> tuple[EvaluationResult, tuple[int, ...]]:
    """Of every seed that has been played, now or before; and the seeds that have not."""
    found: dict[int, EvaluationResult] = {}
    plan = evaluation.plans[0]
    for seed in evaluation.seeds:
        folder = evaluation.folder_of(seed)
        if folder.result.exists() and _is_of(folder.path, plan.with_seed(seed, folder)):
            found[seed] = read_result(folder.result)
    left = tuple(seed for seed in evaluation.seeds if seed not in found)
    return (merged(tuple(found.values())) if len(evaluation.seeds) > 1 else found[evaluation.seeds[0]]), left


def _is_of(folder: Path, plan: Plan) -> bool:
    stated = folder / "fingerprint"
    return stated.exists() and stated.read_text().strip() == plan.fingerprint


async def _evaluate(plan: Plan) -> EvaluationResult:
    logs = plan.folder.logs
    with (
        (logs / "eval.out").open("a") as output,
        role_logs(logs / "eval.log", run=plan.config.bus_config.run, role="eval", worker="", stream=output),
    ):
        return await evaluate(plan)


async def _submit(plan: Plan, out: Path) -> str:
    async with open_source(plan.folder.path, name="eval") as opened:
        done = await write_submission(opened.source, out, plan.lengths)
    seed = f" with seed {plan.seed}" if plan.protocol and len(plan.protocol.seeds) > 1 else ""
    missing = f"; without {', '.join(done.without)}: nothing was seen there" if done.without else ""
    return f"a submission of {done.num_tasks} tasks, the first try at each{seed}, is in {out}{missing}"
