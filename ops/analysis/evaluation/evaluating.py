"""Evaluates one model as asked, and shows and writes the result."""

import anyio.to_thread

from ops.analysis.evaluation.display import sentence, show
from ops.analysis.evaluation.plan import Request, begin, plan_of
from ops.analysis.evaluation.playing import evaluate
from ops.analysis.evaluation.result import write_result
from ops.console.terminal import Console
from ops.run.logs import role_logs


async def evaluate_and_show(request: Request) -> int:
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
