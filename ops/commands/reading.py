"""The commands that look into a run: audit, watch, schema, dead-letters."""

import argparse

from ops.commands.arguments import RUN_DIR, add_run_dir, count
from ops.commands.execution import interruptible
from ops.commands.listing import Commands, add_command
from ops.watch_arguments import add_arguments as add_watch_arguments

_WATCH_EXAMPLE = """\
millrace watch judgements --run-dir runs/mine --verdict success
millrace watch trajectories --from beginning --no-follow | jq .outcome"""


def add_commands(commands: Commands) -> None:
    audit = commands.add("audit", "count tasks, trajectories and judgements from the streams", _audit)
    add_run_dir(audit)
    watch = commands.add(
        "watch", "print a stream of the run as JSON lines, live or to its end", _watch, example=_WATCH_EXAMPLE
    )
    add_watch_arguments(watch, RUN_DIR)
    schema = commands.add("schema", "print every message as JSON Schema, with subjects and streams", _schema)
    schema.add_argument(
        "--run", dest="run_name", default="millrace", metavar="NAME", help="the run that is named (default: %(default)s)"
    )
    schema.add_argument(
        "--num-shards", type=count, default=1, metavar="N", help="of the run's EPISODES streams (default: %(default)s)"
    )
    letters = commands.add(
        "dead-letters",
        "list, read and send again what no worker could handle",
        _letters,
        example="millrace dead-letters list --run-dir runs/mine\nmillrace dead-letters resend 3 --run-dir runs/mine",
    )
    _add_letter_actions(letters)


def _add_letter_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, dest="action", metavar="ACTION")
    listing = add_command(actions, "list", "list every letter, oldest first", _letters)
    listing.add_argument("--json", action="store_true", help="JSON lines in place of a table")
    show = add_command(actions, "show", "show one letter with its message", _letters)
    show.add_argument("number", type=count, metavar="N", help="as in the list")
    show.add_argument("--json", action="store_true", help="JSON in place of text")
    resend = add_command(actions, "resend", "put the message back on its queue", _letters)
    resend.add_argument("number", type=count, nargs="?", metavar="N", help="as in the list")
    resend.add_argument("--all", action="store_true", help="every letter that was not sent again yet")
    resend.add_argument("--again", action="store_true", help="also when it was sent again before")
    for action in (listing, show, resend):
        add_run_dir(action)


@interruptible
async def _audit(options: argparse.Namespace) -> int:
    from ops.audit_command import main

    return await main(options.run_dir.resolve())


@interruptible
async def _watch(options: argparse.Namespace) -> int:
    from ops.watch import main

    return await main(options, RUN_DIR)


@interruptible
async def _schema(options: argparse.Namespace) -> int:
    from ops.message_schema import main

    return main(options.run_name, options.num_shards)


@interruptible
async def _letters(options: argparse.Namespace) -> int:
    from ops.dead_letters_command import main

    return await main(options)
