"""The command `millrace`: reads arguments, and loads what a subcommand needs only when it is called."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from ops.commands.arguments import settle_words
from ops.commands.listing import Command, Headings, parser_of, require_command
from ops.console import completion
from ops.console.standard_streams import readers_may_leave
from ops.processes.process_end import leave

COMMANDS: Headings = {
    "a whole run on this machine": (
        Command("new", "write a small project of your own, to run, change and go on from"),
        Command("quickstart", "train a model made on the spot, from nothing to the curve"),
        Command("run", "serve a run and keep all of its roles running, on one screen"),
        Command("plan", "say what a run needs of GPUs, host and disk, and what would make it fit"),
        Command("gpu-check", "measure what a model comes to on this machine's GPUs"),
        Command("eval", "evaluate a model on a file of tasks, or compare evaluations"),
        Command("sft", "train a model on other people's conversations, before it learns from reward"),
        Command("replay", "put some stored episodes into a new run: to train, judge or consume"),
        Command("chaos", "kill, stop and cut off parts of a run, then count its episodes"),
    ),
    "one worker of a run, on any machine": (
        Command("server", "run the run's own nats-server on this machine", "role"),
        Command("feeder", "admit tasks within the staleness bound", "role"),
        Command("browser", "play episodes in Chromium", "role"),
        Command("policy", "answer observations with the policy", "role"),
        Command("judge", "judge finished trajectories", "role"),
        Command("trainer", "train on judged trajectories and publish checkpoints", "role"),
    ),
    "settings": (
        Command("config", "print a configuration with the origin of every value, or explain a key"),
        Command("config import", "answer another program's configuration key by key, and write one of ours", "config_import"),
    ),
    "workers on several nodes": (
        Command("node", "run the roles that a node file gives this node"),
        Command("launch", "start nodes over ssh, or write what others start them with"),
        Command("drain", "have workers finish what they hold, and leave"),
        Command("restart", "drain workers one at a time, each started anew before the next"),
    ),
    "look into a run": (
        Command("view", "look at finished episodes, step by step, in a browser"),
        Command("report", "say what a run or an archive comes to, as tables and a page"),
        Command("monitor", "show workers, queues, episodes, curve and alerts, live"),
        Command("audit", "count tasks, trajectories and judgements from the streams"),
        Command("watch", "print a stream of the run as JSON lines, live or to its end"),
        Command("schema", "print every message as JSON Schema, with subjects and streams"),
        Command("dead-letters", "list, read and send again what no worker could handle"),
        Command("blocklist", "list, add or remove sites that are left out of training"),
    ),
    "judge again, and compare judges": (
        Command("rejudge", "judge every stored trajectory by another judge, beside the old judgements"),
        Command("calibrate", "compare a judge with labels of people, or with another judge"),
    ),
    "store episodes and models": (
        Command("archive", "copy episodes and screenshots to files before they age out"),
        Command("import", "write an archive, a run or other people's conversations into a run", "import_"),
        Command("export", "write episodes for other tools, as Parquet or JSON"),
        Command("export-model", "write a version of a run as a model folder for transformers and vLLM"),
    ),
    "tasks and their sites": (
        Command("tasks", "write a task file of a suite or benchmark, or check one"),
        Command("site", "serve a site of the suites on loopback, for one's own browser"),
    ),
    "administer": (
        Command("completion", "print what makes a shell complete these command lines"),
        Command("doctor", "say what is installed, what is missing, and how to get it"),
        Command("streams", "create or change a run's streams, as its administrator"),
        Command("cluster", "write configuration, certificates and keys for NATS servers"),
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 done, 78 a mistake that only a person can mend (its sentence is on stderr), 130 Ctrl-C."""
    if completion.is_asked():
        completion.answer(parser_of(COMMANDS, next(iter(completion.typed()), "")))
    given = list(sys.argv[1:] if arguments is None else arguments)
    with readers_may_leave():
        options = parse(given or ["--help"])
        try:
            code: int = options.run(options)
        except KeyboardInterrupt:
            return 130
        return code


def parse(given: list[str]) -> argparse.Namespace:
    """Raises `SystemExit` for arguments that no command has, after saying so on stderr."""
    # A command of two words is one name.
    if any(command.name == " ".join(given[:2]) for commands in COMMANDS.values() for command in commands):
        given = [" ".join(given[:2]), *given[2:]]
    called = given[0] if given else ""
    parser = parser_of(COMMANDS, called)
    if called and not called.startswith("-"):
        require_command(parser, COMMANDS, called)
    options, rest = parser.parse_known_args(given, argparse.Namespace(given=given))
    return settle_words(options, rest)


def run() -> NoReturn:
    """The whole process."""
    leave(main())


if __name__ == "__main__":
    run()
