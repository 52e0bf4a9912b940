"""Evaluates one model on a file of tasks, by a protocol or by a configuration; or compares evaluations."""

import argparse
from pathlib import Path

from ops.commands.arguments import RUN_DIR, add_config, add_overrides, count, seed
from ops.commands.execution import interruptible
from ops.config.protocols import is_protocol, protocol_names

EXAMPLE = """\
millrace eval openwebrl-webvoyager models/mine --tasks webvoyager.jsonl
millrace eval protocol.yaml 30 --run-dir runs/quickstart
millrace eval models/mine --config rollout_test --tasks tasks.jsonl
millrace eval --api NAME --base-url https://host/v1 --key-env KEY \\
    --tasks tasks.jsonl
millrace eval --compare one/result.json other/result.json"""
_SEED = 0
_OF_PLAYING = (
    "run_dir",
    "config",
    "base_url",
    "key_env",
    "tasks",
    "trained_on",
    "repeat",
    "seed",
    "out",
    "submission",
)
"""Options that say how something is played, and where."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    named = ", ".join(protocol_names())
    add("protocol", nargs="?", metavar="PROTOCOL", help=f"a .yaml file that says how to evaluate, or one of {named}")
    add("model", nargs="?", metavar="MODEL", help="a version of the run that is kept, or a model's folder")
    add(
        "--run-dir",
        type=Path,
        metavar="DIR",
        help=f"the run, whose configuration counts (default: {RUN_DIR})",
    )
    add_config(parser, "recipe or .yaml file in place of the run's configuration")
    add("--api", metavar="NAME", help="a model behind an OpenAI-compatible endpoint, in place of MODEL")
    add("--base-url", default="", metavar="URL", help="of the endpoint, as in https://host/v1")
    add("--key-env", default="", metavar="VAR", help="environment variable with its key (default: OPENAI_API_KEY)")
    add("--tasks", type=Path, metavar="FILE", help="task file (default: the protocol's, else the configuration's)")
    add(
        "--trained-on",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a task file of the model's training, to tell what it has seen; may be given several times (default: the run's)",
    )
    add("--repeat", type=count, metavar="K", help="episodes of each task (default: env_config.test_tasks_repeat_times)")
    add("--seed", type=seed, metavar="N", help="of sampling and intervals; of a protocol's seeds, this one alone")
    add("--out", type=Path, metavar="DIR", help="folder of the evaluation (default: one of its own in DIR/evaluations)")
    add("--submission", type=Path, metavar="DIR", help="write there what Online-Mind2Web takes as a submission")
    add("--compare", nargs="+", type=Path, metavar="RESULT", help="compare evaluations by their result.json instead")
    add_overrides(parser)


def run(options: argparse.Namespace) -> int:
    _settle_words(options)
    given = [name for name in ("model", "api", "compare") if getattr(options, name)]
    if len(given) > 1 or not (given or options.protocol):
        options.parser.error("write one of MODEL, --api NAME and --compare RESULT")
    if options.compare and (others := _beside_compare(options)):
        options.parser.error(f"--compare takes results alone: leave {', '.join(others)} out")
    if options.base_url and not options.api:
        options.parser.error("--base-url is of a model behind an endpoint: name it with --api")
    return _compare(options) if options.compare else _eval_one(options)


def _beside_compare(options: argparse.Namespace) -> tuple[str, ...]:
    """What else was written, as a person writes it."""
    words = {"protocol": "PROTOCOL", "overrides": "KEY=VALUE"} | {name: f"--{name.replace('_', '-')}" for name in _OF_PLAYING}
    return tuple(word for name, word in words.items() if getattr(options, name) not in (None, "", []))


def _settle_words(options: argparse.Namespace) -> None:
    """Tells the protocol, the model and the overrides apart."""
    words = [word for word in (options.protocol, options.model, *options.overrides) if word is not None]
    options.overrides = [word for word in words if "=" in word]
    names = [word for word in words if "=" not in word]
    options.protocol = names.pop(0) if names and is_protocol(names[0]) else None
    options.model = names.pop(0) if names else None
    if names:
        options.parser.error(f"unrecognized arguments: {' '.join(names)}")


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
    from ops.analysis.evaluation.request import Request

    is_version = (options.model or "").isdigit()
    without_run = options.config or options.api or (options.protocol and not is_version)
    run_dir = options.run_dir if options.run_dir or without_run else RUN_DIR
    request = Request(
        protocol=options.protocol or "",
        model=options.model or "",
        api=options.api or "",
        base_url=options.base_url,
        key_env=options.key_env,
        run_dir=run_dir.resolve() if run_dir else None,
        recipe=options.config,
        tasks=options.tasks,
        trained_on=tuple(file.resolve() for file in options.trained_on),
        repeat=options.repeat,
        seed=options.seed,
        out=options.out.resolve() if options.out else None,
        submission=options.submission.resolve() if options.submission else None,
        overrides=tuple(options.overrides),
    )
    return await evaluate_and_show(request)
