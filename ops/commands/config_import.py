"""Answers another program's configuration key by key, and writes one of ours."""

import argparse
from pathlib import Path

from ops.commands.execution import interruptible

EXAMPLE = """\
millrace config import train.sh --from verl
millrace config import webshop.sh --from agentfly --out webshop.yaml
millrace config import grpo.yaml --from rlinf --json"""
PROGRAMS = ("webgym", "rlinf", "agentfly", "vagen", "verl")
_UNKNOWN = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="its YAML configuration, or the script that starts it, which is never run")
    add("--from", required=True, choices=PROGRAMS, dest="program", help="whose it is")
    add("--out", type=Path, metavar="OUT.yaml", help="configuration to write (default: FILE's name with _millrace.yaml, here)")
    add("--json", action="store_true", help="JSON in place of tables")


@interruptible
async def run(options: argparse.Namespace) -> int:
    """Returns 0 when every key has an answer, 1 when some are unknown; the configuration is written either way."""
    from ops.config.elsewhere.answering import answers
    from ops.config.elsewhere.display import as_json, shown
    from ops.config.elsewhere.import_file import write_import
    from ops.config.elsewhere.programs import PROGRAMS as TABLES
    from ops.config.elsewhere.reading import read_file
    from ops.console.terminal import Console

    program = TABLES[options.program]
    found = answers(program, read_file(options.file, program.knows))
    files = write_import(found, options.file, options.out or Path(f"{options.file.stem}_millrace.yaml"))
    console = Console(highlight=False, markup=False, emoji=False)
    if options.json:
        console.out(as_json(found, files), highlight=False)
    else:
        for part in shown(found, files, as_lines=not console.is_terminal):
            console.print(part, soft_wrap=not console.is_terminal)
    return _UNKNOWN if found.unknown else 0
