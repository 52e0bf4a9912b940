"""Writes all episodes of an archive or run into another run, or other people's conversations."""

import argparse
from pathlib import Path

from ops.commands.arguments import add_joining
from ops.commands.conversation_arguments import (
    add_conversations,
    conversation_request,
    conversation_run,
    refuse_conversation_arguments,
)
from ops.commands.execution import interruptible, joined_run
from schemas.errors import ConfigurationError
from schemas.extras import require_extra

EXAMPLE = """\
millrace import runs/mine/archive --run-dir runs/second
millrace import trajectories.jsonl --from openai --run-dir runs/sft \\
    --config sft policy_config.base_model=models/mine"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, metavar="SOURCE", help="folder of an archive or a run, or with --from data")
    add_joining(parser)
    parser.add_argument("--no-judgements", action="store_true", help="leave judgements out, to have the run judge anew")
    add_conversations(parser)


@interruptible
async def run(options: argparse.Namespace) -> int:
    source = options.source.resolve()
    if options.form is None:
        refuse_conversation_arguments(options)
        require_extra("pyarrow", "archive")
        from ops.archive.importing import import_episodes

        folder, config = joined_run(options)
        return await import_episodes(source, folder, config, judgements=not options.no_judgements)
    if options.no_judgements:
        raise ConfigurationError("what is imported with --from counts as a success by being there: leave --no-judgements out")
    from ops.sft.importing import import_conversations

    request = conversation_request(options, source)
    folder, config = await conversation_run(options)
    await import_conversations(request, folder, config)
    return 0
