"""Writes a small project to begin one's own from."""

import argparse
from pathlib import Path

from ops.commands.execution import interruptible

EXAMPLE = """\
millrace new mine
cd mine && millrace run config.yaml"""
_NEXT = """\
{folder} is a project of your own: three tasks on a small site, a judge, an
estimator, a tiny model. README.md says what each file is for.

  cd {folder}
  pytest                      plays the tasks in Chromium, without a model
  millrace run config.yaml    trains the model on them, in minutes"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder to make; it has to be new or empty")


@interruptible
async def run(options: argparse.Namespace) -> int:
    from ops.console.terminal import Console
    from ops.project.writing import write_project
    from schemas.extras import require_extra

    require_extra("transformers", "trainer")
    await write_project(options.folder)
    Console().print(_NEXT.format(folder=options.folder), markup=False, highlight=False, soft_wrap=True)
    return 0
