"""Runs every role of a run on this machine."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ops.commands.arguments import add_overrides
from ops.commands.execution import interruptible, joined_run, planned_run
from ops.commands.share_arguments import add_shares, settle_config, wanted
from ops.console.completion import completed_by, recipes_and_files

if TYPE_CHECKING:
    from schemas.config import Config

EXAMPLE = """\
millrace run update_online --run-dir runs/mine \\
    policy_config.base_model=models/mine env_config.train_tasks=tasks.jsonl
millrace run --run-dir runs/mine
millrace run mine.yaml --policy-gpus 0,1,2,3 --trainer-gpus 4,5 --dry-run"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    completed_by(
        add(
            "config",
            nargs="?",
            metavar="CONFIG",
            help="recipe or .yaml file; without it, the configuration that the run's folder holds",
        ),
        recipes_and_files,
    )
    add("--run-dir", type=Path, metavar="DIR", help="folder of the run (default: the configuration's save_path)")
    add_shares(parser)
    add("--dry-run", action="store_true", help="print what would be started")
    add_overrides(parser)
    parser.set_defaults(settle=settle_config)


@interruptible
async def run(options: argparse.Namespace) -> int:
    from ops.console.terminal import Console
    from ops.machine.machine import outline, run_here
    from ops.machine.placement import shares_of, specs_of, visible_gpus

    if not options.dry_run:
        options.overrides += await _model_found(planned_run(options)[1])
    folder, config = planned_run(options) if options.dry_run else joined_run(options)
    which = ("--run-dir", str(folder.path), *(("--config", options.config) if options.config else ()), *options.overrides)
    specs = tuple(specs_of(shares_of(config, wanted(options), visible_gpus()), which))
    if options.dry_run:
        Console(soft_wrap=True).print(outline(config, specs))
        return 0
    return await run_here(folder, config, specs)


async def _model_found(config: "Config") -> list[str]:
    """What makes every role of this run begin with one model, fetched before there is a run; refused, before it is fetched."""
    from anyio.to_thread import run_sync

    from ops.config.overrides import as_overrides
    from ops.run.base_models import described, pinned, reference_model
    from trainer.model.supported import require_trainable

    def found() -> dict[str, str]:
        models = {}
        if config.feeder_config.learns:
            with described(policy) as folder:
                require_trainable(folder)
            if (reference := reference_model(config.objective_config)) is not None:
                require_trainable(reference)
                models["objective_config.reference_model"] = str(reference)
        return {**models, f"policy_config.{key}": pinned(policy)}

    policy = config.policy_config
    key = "checkpoint_path" if policy.checkpoint_path else "base_model"
    return [*as_overrides(await run_sync(found))] if policy.engine == "vllm" else []
