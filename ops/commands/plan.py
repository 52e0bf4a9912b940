"""Says what a run needs of this machine, or of another, before anything is started."""

import argparse
from pathlib import Path

from ops.commands.arguments import above_zero, add_overrides, count
from ops.commands.execution import interruptible, planned_run
from ops.commands.share_arguments import add_shares, settle_config, wanted
from ops.console.completion import completed_by, recipes_and_files

EXAMPLE = """\
millrace plan mine.yaml
millrace plan update_online --gpu H100 --gpus 8 \\
    policy_config.base_model=Qwen/Qwen3-VL-8B-Instruct
millrace plan mine.yaml --gpu RTX4090:24 --gpus 1 --host-gib 64 --json"""
_DOES_NOT_FIT = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    completed_by(
        add("config", nargs="?", metavar="CONFIG", help="recipe or .yaml file; without it, that of the run's folder"),
        recipes_and_files,
    )
    add("--run-dir", type=Path, metavar="DIR", help="folder of a run")
    add("--gpu", metavar="NAME", help="kind of GPU, as in H100, or with its GiB, as in MINE:48 (default: this machine's)")
    add("--gpus", type=count, metavar="N", help="how many (default: as many as are here, or 1)")
    add("--host-gib", type=count, metavar="N", help="memory of the host (default: this machine's)")
    add("--cores", type=count, metavar="N", help="of the host (default: this machine's)")
    add("--steps", type=above_zero, default=10.0, metavar="N", help="of an episode, on average (default: 10)")
    add("--answer-tokens", type=count, default=300, metavar="N", help="of an answer, on average (default: 300)")
    add("--page-s", type=above_zero, default=3.0, metavar="S", help="seconds of a step in the browser (default: 3)")
    add_shares(parser)
    add("--json", action="store_true", help="JSON in place of tables; sizes in bytes")
    add_overrides(parser)
    parser.set_defaults(settle=settle_config)


@interruptible
async def run(options: argparse.Namespace) -> int:
    import json
    import os

    from anyio.to_thread import run_sync

    from ops.console.terminal import Console
    from ops.machine.placement import shares_of, visible_gpus
    from ops.planning.display import figures, shown
    from ops.planning.gpus import GIB, gpu_named, own_gpu, said_gpus
    from ops.planning.model_size import model_size
    from ops.planning.plan import Machine, planned
    from ops.planning.problems import problems
    from ops.planning.rates import Workload, rates
    from ops.run.base_models import described
    from schemas.errors import ConfigurationError

    _, config = planned_run(options)
    gpu = gpu_named(options.gpu) if options.gpu else own_gpu()
    if gpu is None:
        raise ConfigurationError(f"there is no GPU here: write the kind that there will be, as in --gpu H100 ({said_gpus()})")
    if not gpu.memory:
        raise ConfigurationError(f"the memory of {gpu.name} is not known: write it in GiB, as in --gpu mine:80")
    here = visible_gpus()
    gpus = tuple(map(str, range(options.gpus))) if options.gpus else here or ("0",)
    host = options.host_gib * GIB if options.host_gib else 0.0 if options.gpu else _host_memory()
    with described(config.policy_config) as folder:
        size = await run_sync(model_size, folder)
    cores = options.cores or (0 if options.gpu else os.cpu_count() or 0)
    machine = Machine(gpu=gpu, host_memory=host, cores=cores)
    made = planned(config, size, machine, shares_of(config, wanted(options), gpus))
    found = tuple(problems(made))
    work = Workload(steps=options.steps, answer_tokens=options.answer_tokens, page_s=options.page_s)
    speed = rates(made, work)
    console = Console(soft_wrap=True, highlight=False)
    if options.json:
        console.out(json.dumps(figures(made, found, speed), indent=2), highlight=False)
    else:
        for part in shown(made, found, speed):
            console.print(part)
    return _DOES_NOT_FIT if found else 0


def _host_memory() -> float:
    import psutil

    return float(psutil.virtual_memory().total)
