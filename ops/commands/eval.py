"""Evaluates one model on a file of tasks, or compares evaluations."""

import argparse
from pathlib import Path

from ops.commands.arguments import RUN_DIR, add_overrides, count, seed
from ops.commands.execution import interruptible

EXAMPLE = """\
millrace eval 30 --run-dir runs/quickstart --repeat 4
millrace eval models/mine --config rollout_test --tasks tasks.jsonl
millrace eval --api NAME --base-url https://host/v1 --key-env KEY \\
    --tasks tasks.jsonl
millrace eval --compare one/result.json other/result.json"""
_SEED = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", nargs="?", metavar="MODEL", help="a version of the run that is kept, or a model's folder")
    add(
        "--run-dir",
        type=Path,
        metavar="DIR",
        help=f"the run, whose configuration counts (default: {RUN_DIR})",
    )
    add("--config", metavar="RECIPE", help="recipe or .yaml file in place of the run's configuration")
    add("--api", metavar="NAME", help="a model behind an OpenAI-compatible endpoint, in place of MODEL")
    add("--base-url", default="", metavar="URL", help="of the endpoint, as in https://host/v1")
    add("--key-env", default="", metavar="VAR", help="environment variable with its key (default: OPENAI_API_KEY)")
    add("--tasks", type=Path, metavar="FILE", help="task file (default: the test tasks of the configuration)")
    add("--repeat", type=count, metavar="K", help="episodes of each task (default: env_config.test_tasks_repeat_times)")
    add("--seed", type=seed, metavar="N", help="of sampling and intervals (default: feeder_config.seed)")
    add("--out", type=Path, metavar="DIR", help="folder of the evaluation (default: one of its own in DIR/evaluations)")
    add("--compare", nargs="+", type=Path, metavar="RESULT", help="compare evaluations by their result.json instead")
    add_overrides(parser)


def run(options: argparse.Namespace) -> int:
    # What argparse took for the model may be the first override.
    if options.model is not None and "=" in options.model:
        options.model, options.overrides = None, [options.model, *options.overrides]
    given = [name for name in ("model", "api", "compare") if getattr(options, name)]
    if len(given) != 1:
        options.parser.error("write one of MODEL, --api NAME and --compare RESULT")
    if options.base_url and not options.api:
        options.parser.error("--base-url is of a model behind an endpoint: name it with --api")
    return _compare(options) if options.compare else _eval_one(options)


@interruptible
async def _compare(options: argparse.Namespace) -> int:
    from ops.analysis.evaluation.comparison import compare, require_alike
    from ops.analysis.evaluation.display import show_comparison
    from ops.analysis.evaluation.result import read_result
    from ops.console.terminal import Console

    results = [read_result(path) for path in options.compare]
    require_alike(results)
    show_comparison(results, [compare(results[0], other, _SEED) for other in results[1:]], Console())
    return 0


@interruptible
async def _eval_one(options: argparse.Namespace) -> int:
    from schemas.extras import require_extra

    require_extra("pyarrow", "archive")
    from ops.analysis.evaluation.evaluating import evaluate_and_show
    from ops.analysis.evaluation.plan import Request

    run_dir = options.run_dir if options.run_dir or options.config or options.api else RUN_DIR
    request = Request(
        model=options.model or "",
        api=options.api or "",
        base_url=options.base_url,
        key_env=options.key_env,
        run_dir=run_dir.resolve() if run_dir else None,
        recipe=options.config,
        tasks=options.tasks,
        repeat=options.repeat,
        seed=options.seed,
        out=options.out.resolve() if options.out else None,
        overrides=tuple(options.overrides),
    )
    return await evaluate_and_show(request)
