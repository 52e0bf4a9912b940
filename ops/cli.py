"""The command `millrace`: reads arguments, and loads what a subcommand needs only when it is called."""

import argparse
import sys
from collections.abc import Sequence

from ops.commands import administration, configuring, judging, launching, reading, roles, stored, tasks, watching, whole_runs
from ops.commands.listing import Commands, Handler
from ops.console.standard_streams import readers_may_leave


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 done, 78 a mistake that only a person can mend (its sentence is on stderr), 130 Ctrl-C."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with readers_may_leave():
        options = parse(given)
        command: Handler = options.run
        try:
            return command(options)
        except KeyboardInterrupt:
            return 130


def parse(given: list[str]) -> argparse.Namespace:
    """Raises `SystemExit` for arguments that no command has, after saying so on stderr."""
    options, rest = _parser().parse_known_args(given, argparse.Namespace(given=given))
    # argparse ends a list of overrides at the next option; they may stand anywhere.
    if rest and not (hasattr(options, "overrides") and all("=" in text and not text.startswith("-") for text in rest)):
        options.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.overrides = [*options.overrides, *rest]
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="millrace",
        usage="millrace COMMAND [ARGUMENT ...]\n       millrace COMMAND --help",
        description="Reinforcement learning for visual web agents over NATS JetStream.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = Commands(parser)
    for heading, *parts in (
        ("a whole run on this machine", whole_runs),
        ("one worker of a run, on any machine", roles),
        ("settings", configuring),
        ("workers on several nodes", launching),
        ("look into a run", watching, reading),
        ("judge again, and compare judges", judging),
        ("store episodes and models", stored),
        ("tasks and their sites", tasks),
        ("administer", administration),
    ):
        commands.heading(heading)
        for part in parts:
            part.add_commands(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
