"""Writes a version of a run as an ordinary model folder, for transformers and vLLM."""

import argparse
from pathlib import Path

from ops.commands.arguments import add_run_dir, seed
from ops.commands.execution import interruptible
from ops.console.terminal import Console
from ops.run.folder import RunFolder

EXAMPLE = "millrace export-model runs/mine --out models/mine --version 40"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_dir(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="folder to be made")
    parser.add_argument(
        "--version", type=seed, metavar="N", help="a version that is kept; 0: the first model (default: newest)"
    )


@interruptible
async def run(options: argparse.Namespace) -> int:
    from ops.run.model_export import export_model

    out = options.out.resolve()
    exported = export_model(RunFolder(options.run_dir.resolve()), out, options.version)
    Console().print(f"version {exported} is in {out}", soft_wrap=True, highlight=False, markup=False)
    return 0
