"""Prints what makes a shell complete the command lines of millrace."""

import argparse

from ops.console.completion import SHELLS, shell_code

EXAMPLE = 'eval "$(millrace completion bash)"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "shell", metavar="SHELL", choices=SHELLS, help=f"{', '.join(SHELLS)}: the one that the line is typed in"
    )


def run(options: argparse.Namespace) -> int:
    print(shell_code(options.shell), end="")
    return 0
