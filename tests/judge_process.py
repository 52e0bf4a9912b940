"""One judge worker as a process of its own, without a guard, so that a kill hits it.

python -m tests.judge_process RUN_DIR NAME
"""

import os
import sys
from pathlib import Path

import anyio

from bus.presence import presence
from judges.endpoint.opening import open_endpoints
from judges.rubric.budget import open_budget
from judges.rubric.interview import RecordingInterviewer
from judges.rubric.journal import Journal
from judges.rubric.judge import RubricJudge
from judges.rubric.prompts import committed_prompts
from judges.worker import JudgeWorker
from ops.logs import role_logs
from ops.roles import join, subjects_of
from ops.run_folder import RunFolder
from schemas.ids import WorkerId
from schemas.messages import Role


async def serve(path: Path, name: WorkerId) -> None:
    folder = RunFolder(path)
    config = folder.load()
    subjects, judge = subjects_of(config), config.judge_config
    async with (
        join(folder, config, role="judge", name=name) as bus,
        presence(bus, subjects, Role.JUDGE, name) as status,
        open_endpoints(config.openai_config, os.environ) as endpoints,
        open_budget(bus, subjects, judge, status) as budget,
    ):
        interviewer = RecordingInterviewer(
            endpoints=endpoints,
            journal=Journal(bus, subjects, rubric=judge.rubric, worker=name),
            budget=budget,
            config=config.openai_config,
            status=status,
        )
        worker = JudgeWorker(
            bus=bus,
            subjects=subjects,
            worker=name,
            status=status,
            bus_config=config.bus_config,
            env_config=config.env_config,
            judge_config=judge,
            judge=RubricJudge(interviewer, committed_prompts(judge.judge), judge),
        )
        await worker.run()


def main() -> None:
    path, name = Path(sys.argv[1]), sys.argv[2]
    with role_logs(RunFolder(path).logs / f"{name}.log", run="test", role="judge", worker=name):
        anyio.run(serve, path, WorkerId(name), backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main()
