"""Measures what a model comes to on this machine's GPUs."""

import argparse
from pathlib import Path

from ops.commands.arguments import above_zero
from ops.commands.execution import interruptible

EXAMPLE = """\
millrace gpu-check models/Qwen3-VL-2B-Instruct --out check
millrace gpu-check --random 8B --only serving --only training"""
_FAILED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", type=Path, nargs="?", metavar="MODEL", help="folder of a model (default: a Qwen3-VL of random weights)")
    add("--random", choices=("tiny", "2B", "4B", "8B"), help="shape of random weights (default: 2B; without a GPU tiny)")
    add("--minutes", type=above_zero, default=20.0, metavar="N", help="of learning on MiniWoB++ (default: 20)")
    add(
        "--only",
        action="append",
        default=[],
        choices=("serving", "serving in parts", "training", "learning"),
        help="this part, and those that are named so beside it",
    )
    add("--out", type=Path, default=Path("gpu-check"), metavar="DIR", help="folder for the figures (default: gpu-check)")


@interruptible
async def run(options: argparse.Namespace) -> int:
    """Returns 1 when a part could not be done."""
    from anyio.to_thread import run_sync

    from ops.console.terminal import Console
    from ops.gpu_check import checks, display
    from ops.machine.placement import visible_gpus

    num_gpus, console = len(visible_gpus()), Console(highlight=False)
    model, folder = await run_sync(_prepared, options, num_gpus)
    failures = []
    for part in checks.parts(model, folder, num_gpus=num_gpus, minutes=options.minutes, only=tuple(options.only)):
        console.print(f"{part.name}: at most {part.seconds / 60:.0f} min", markup=False)
        if (failure := await checks.run(part, folder)) is not None:
            failures.append(failure)
    found = await run_sync(display.written, folder, failures)
    console.print(display.table(found, title=f"{model.name} on {num_gpus or 'no'} GPU{'' if num_gpus == 1 else 's'}"))
    for failure in failures:
        console.print(f"{failure.part} could not be checked: {failure.reason}", style="bold red", soft_wrap=True, markup=False)
    return _FAILED if failures else 0


def _prepared(options: argparse.Namespace, num_gpus: int) -> tuple[Path, Path]:
    """The model and the folder for figures, whole paths."""
    from ops.console.output_folder import make_output
    from ops.gpu_check.random_model import random_model
    from ops.gpu_check.refreshing import require_room
    from ops.gpu_check.results import forget
    from schemas.errors import ConfigurationError
    from trainer.model.supported import require_trainable

    model: Path | None = options.model
    if model is not None and not (model / "config.json").is_file():
        raise ConfigurationError(f"{model} is no model's folder: it has no config.json")
    if model is not None:
        require_trainable(model)
    folder: Path = make_output(options.out.resolve())
    forget(folder)
    shape = options.random or ("2B" if num_gpus else "tiny")
    found: Path = model.resolve() if model is not None else random_model(folder / f"random-{shape}", shape)
    if "serving" in (options.only or ["serving"]):
        require_room(found, folder)
    return found, folder
