"""One judge worker as a process of its own, without a guard, so that a kill hits it.

python -m tests.support.judging.judge_process RUN_DIR NAME
"""

import sys
from pathlib import Path

import anyio

from ops.roles.running import run_role
from ops.run.folder import RunFolder
from ops.run.logs import role_logs
from schemas.ids import WorkerId
from schemas.messages import Role


def main() -> None:
    folder, name = RunFolder(Path(sys.argv[1])), sys.argv[2]
    config = folder.load()
    with role_logs(folder.logs / f"{name}.log", run=config.bus_config.run, role="judge", worker=name):
        anyio.run(run_role, Role.JUDGE, folder.path, config, WorkerId(name), backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main()
