"""What judges of one's own would say of the episodes that a run has stored, without writing anything:

python examples/try_judges.py --run-dir runs/quickstart examples/own_judge.py:one_number_v1
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from bus import BEGINNING, connect, consume
from bus.evidence import Evidence
from judges.episode import JudgedEpisode
from judges.judge import Judge
from schemas.errors import JudgeError
from schemas.extensions import JUDGES


async def said(by: Judge, episode: JudgedEpisode) -> str:
    try:
        ruling = await by.judge(episode)
    except JudgeError as error:
        return f"{by.name} no verdict ({error})"
    return f"{by.name} {ruling.verdict.value} {ruling.reward}"


async def try_out(run_dir: Path, judges: Sequence[Judge]) -> None:
    async with connect(run_dir, name="example", serve=True) as run:
        evidence = Evidence(run.bus, run.subjects)
        async for item in run.trajectories(start=BEGINNING, follow=False):
            if item.message.outcome.finished:
                episode = JudgedEpisode(item.message, evidence)
                print(f"{item.message.episode}:", " | ".join([await said(judge, episode) for judge in judges]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("judges", nargs="+", metavar="MODULE:NAME", help="judges that are functions")
    parser.add_argument("--run-dir", type=Path, default=Path("runs/quickstart"))
    options = parser.parse_args()
    consume(lambda: try_out(options.run_dir, [JUDGES.find(name).made for name in options.judges]))


if __name__ == "__main__":
    main()
