"""Judges of one's own. What they would say of the episodes that a run has stored, without writing anything:

    python examples/custom_judge.py --run-dir runs/quickstart

A run that is judged by one of them says so in its configuration:

    judge_config: {judge: one_number_v1, modules: [examples/custom_judge.py]}

and by both, so that a success has the right number and took no refused action:

    judge_config:
      judge: clean_number_v1
      modules: [examples/custom_judge.py]
      composites: {clean_number_v1: {combine: all, parts: {one_number_v1: 1, clean_steps_v1: 1}}}
"""

import argparse
from pathlib import Path

import anyio

from bus import BEGINNING, connect
from bus.evidence import Evidence
from judges.episode import JudgedEpisode
from judges.judge import Judge
from judges.programmatic.numbers import numbers_of
from judges.registry import judge
from schemas.errors import JudgeError, NoVerdict
from schemas.messages import ActionEffect


@judge("one_number_v1")
def one_number(episode: JudgedEpisode) -> bool:
    """Success when the answer commits itself to one number, the reference's: `12 or 13` is right about nothing."""
    trajectory = episode.trajectory
    if not trajectory.task.reference_answer:
        raise NoVerdict(f"task {trajectory.task.task} has no reference answer")
    return numbers_of(trajectory.answer) == numbers_of(trajectory.task.reference_answer)


@judge("clean_steps_v1")
async def clean_steps(episode: JudgedEpisode) -> float:
    """The share of the observations that no refused action led to: reads the chain, so it is `async`."""
    seen = await episode.observations()
    return sum(each.effect is not ActionEffect.REFUSED for each in seen) / len(seen)


async def said(by: Judge, episode: JudgedEpisode) -> str:
    try:
        ruling = await by.judge(episode)
    except JudgeError as error:
        return f"{by.name} no verdict ({error})"
    return f"{by.name} {ruling.verdict.value} {ruling.reward}"


async def try_out(run_dir: Path) -> None:
    async with connect(run_dir, name="example") as run:
        evidence = Evidence(run.bus, run.subjects)
        async for item in run.trajectories(start=BEGINNING, follow=False):
            if item.message.outcome.finished:
                episode = JudgedEpisode(item.message, evidence)
                print(f"{item.message.episode}:", await said(one_number, episode), "|", await said(clean_steps, episode))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run-dir", type=Path, default=Path("runs/quickstart"))
    anyio.run(try_out, parser.parse_args().run_dir)


if __name__ == "__main__":
    main()
