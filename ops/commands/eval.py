"""`millrace eval`: evaluates one model on a file of tasks, or compares evaluations that there are."""

from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread

from ops.analysis.evaluation.comparison import compare, require_alike
from ops.analysis.evaluation.display import sentence, show, show_comparison
from ops.analysis.evaluation.plan import Request, begin, plan_of
from ops.analysis.evaluation.playing import evaluate
from ops.analysis.evaluation.result import read_result, write_result
from ops.console.terminal import Console
from ops.run.logs import role_logs

_SEED = 0


async def main(request: Request) -> int:
    plan = await anyio.to_thread.run_sync(plan_of, request)
    begin(plan)
    logs, config = plan.folder.logs, plan.config
    with (
        (logs / "eval.out").open("a") as output,
        role_logs(logs / "eval.log", run=config.bus_config.run, role="eval", worker="", stream=output),
    ):
        result = await evaluate(plan)
    write_result(plan.folder.result, result)
    console = Console()
    show(result, console)
    console.print(sentence(result), soft_wrap=True, highlight=False, markup=False)
    console.print(f"written to {plan.folder.result}", soft_wrap=True, highlight=False, markup=False)
    return 0


def compare_files(paths: Sequence[Path]) -> int:
    results = [read_result(path) for path in paths]
    require_alike(results)
    show_comparison(results, [compare(results[0], other, _SEED) for other in results[1:]], Console())
    return 0
