"""Trains a run on other people's conversations: a warm start that learning from reward begins from."""

import argparse
from pathlib import Path

from ops.commands.arguments import add_run, count
from ops.commands.conversation_arguments import (
    add_conversations,
    conversation_request,
    conversation_run,
    refuse_conversation_arguments,
)
from ops.commands.execution import guarded
from schemas.errors import ConfigurationError

EXAMPLE = """\
millrace sft trajectories.jsonl --from openai --run-dir runs/sft \\
    --config sft policy_config.base_model=models/mine
millrace sft --run-dir runs/sft --epochs 4"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("--epochs", type=count, metavar="N", help="times each answer is learnt (default: as configured)")
    add_conversations(parser)
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="WORD",
        help="data to import first, a file or folder; and KEY=VALUE, configuration to override",
    )
    parser.set_defaults(settle=_settle)


def _settle(options: argparse.Namespace) -> None:
    """Words among the overrides that are none name the data, and so does one that is a file's name."""
    words = options.overrides
    data = [word for word in words if not ("=" in word or word.startswith("~")) or Path(word).exists()]
    options.overrides = [word for word in words if word not in data]
    if len(data) > 1:
        options.parser.error(f"{' and '.join(data)} are several files or folders: write one")
    options.data = Path(data[0]) if data else None


@guarded
async def run(options: argparse.Namespace) -> int:
    from ops.sft.importing import import_conversations
    from ops.sft.training import train_conversations

    if options.form is None:
        refuse_conversation_arguments(options)
    if (options.data is None) != (options.form is None):
        raise ConfigurationError("data and its form go together, as in millrace sft data.jsonl --from openai --run-dir DIR")
    request = None if options.data is None else conversation_request(options, options.data.resolve())
    folder, config = await conversation_run(options)
    if request is not None:
        await import_conversations(request, folder, config)
    if not folder.config.exists():
        folder.create(config)
    await train_conversations(folder, config, num_epochs=options.epochs, overrides=options.overrides)
    return 0
