"""The commands that read a run's records: audit, watch, schema, dead-letters, blocklist."""

import argparse
from pathlib import Path

from ops.commands.arguments import RUN_DIR, above_zero, add_run_dir, count
from ops.commands.execution import interruptible
from ops.commands.listing import Commands, add_command
from ops.commands.watch_arguments import add_arguments as add_watch_arguments

_WATCH_EXAMPLE = """\
millrace watch judgements --run-dir runs/mine --verdict success
millrace watch calls --stage criterion_b | jq .message.text
millrace watch trajectories --from beginning --no-follow | jq .outcome"""
_BLOCKLIST_EXAMPLE = """\
millrace blocklist --run-dir runs/mine
millrace blocklist add example.org --hours 48 --run-dir runs/mine
millrace blocklist remove https://www.example.org/ --run-dir runs/mine"""


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
    blocklist = commands.add(
        "blocklist",
        "list, add or remove sites that are left out of training",
        _blocklist,
        example=_BLOCKLIST_EXAMPLE,
    )
    _add_blocklist_actions(blocklist)


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


def _add_blocklist_actions(parser: argparse.ArgumentParser) -> None:
    add_run_dir(parser)
    parser.add_argument("--all", action="store_true", help="also those that are over or were removed")
    parser.add_argument("--json", action="store_true", help="JSON lines in place of a table")
    actions = parser.add_subparsers(dest="action", metavar="[add | remove]", help="change the list")
    add = add_command(actions, "add", "leave a site out of training for a while", _blocklist)
    add.add_argument("--hours", type=above_zero, metavar="H", help="how long (default: judge_config.blocklist_hours)")
    add.add_argument("--reason", metavar="TEXT", help="for whoever reads the list")
    remove = add_command(actions, "remove", "train on a site again", _blocklist)
    for action in (add, remove):
        action.add_argument("site", metavar="SITE", help="host, address of a page, or name of a suite")
        # Without a default of its own: that would replace what was said before the action.
        action.add_argument("--run-dir", type=Path, metavar="DIR", default=argparse.SUPPRESS, help="folder of the run")


@interruptible
async def _audit(options: argparse.Namespace) -> int:
    from ops.commands.audit import main

    return await main(options.run_dir.resolve())


@interruptible
async def _watch(options: argparse.Namespace) -> int:
    from ops.commands.watch import main

    return await main(options, RUN_DIR)


@interruptible
async def _schema(options: argparse.Namespace) -> int:
    from ops.commands.schema import main

    return main(options.run_name, options.num_shards)


@interruptible
async def _letters(options: argparse.Namespace) -> int:
    from ops.commands.dead_letters import main

    return await main(options)


@interruptible
async def _blocklist(options: argparse.Namespace) -> int:
    from ops.commands.blocklist import main

    return await main(options)
