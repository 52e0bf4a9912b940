"""Trains on the stored episodes of a finished run, or of an archive, from Python. No browser and no policy runs.

    python examples/offline_training.py runs/quickstart --into runs/offline --passes 2

The same from a terminal: `millrace replay runs/quickstart --into runs/offline --passes 2 --train`.
"""

import argparse
from pathlib import Path

import anyio

from ops.console.terminal import Console
from ops.replay.request import ReplayRequest, Selection
from ops.replay.training import train_offline
from schemas.messages import Split


async def main(source: Path, into: Path, num_passes: int) -> None:
    console = Console()
    request = ReplayRequest(
        source=source,
        into=into,
        # Which episodes: every training episode, the unsuccessful ones too. Those are consumed and counted, not trained on.
        selection=Selection(split=Split.TRAIN),
    )
    result = await train_offline(
        request,
        num_passes=num_passes,
        # Everything that is not overridden is as in the run that played the episodes.
        overrides=("algorithm_config.learning_rate=5e-4", "trainer_config.keep_checkpoints=2"),
        console=console,
    )
    console.print(result.table())
    console.print(
        f"loss {result.first['loss']:.3f} -> {result.last['loss']:.3f}; the model is in {into / result.model}", soft_wrap=True
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder of a run or of an archive")
    parser.add_argument("--into", type=Path, required=True, help="folder of the run that is made")
    parser.add_argument("--passes", type=int, default=1, help="passes over the stored episodes")
    options = parser.parse_args()
    anyio.run(main, options.source.resolve(), options.into.resolve(), options.passes)
