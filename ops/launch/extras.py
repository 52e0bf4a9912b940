"""The optional packages that the roles of one node need; roles without a GPU need no torch. `node.sh` asks for them."""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from ops.launch.node_file import read_node_file
from schemas.errors import ConfigurationError
from schemas.messages import Role

_EXTRAS = {
    Role.FEEDER: "feeder",
    Role.BROWSER: "browser",
    Role.POLICY: "policy",
    Role.JUDGE: "judge",
    Role.ARCHIVER: "archive",
    Role.TRAINER: "trainer",
}
"""Of `pyproject.toml`; a server needs none."""
_ANSWER_S = 60.0


def extras_of(roles: Iterable[Role], *, has_gpu: bool) -> tuple[str, ...]:
    """Example: a browser and a policy on a machine without a GPU need `browser` and `policy-cpu`."""
    named = (_EXTRAS[role] for role in roles if role in _EXTRAS)
    return tuple(sorted("policy-cpu" if name == "policy" and not has_gpu else name for name in named))


def _has_gpu() -> bool:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return False
    try:
        return subprocess.run([tool, "-L"], capture_output=True, check=False, timeout=_ANSWER_S).returncode == 0
    except subprocess.TimeoutExpired as error:
        raise ConfigurationError(f"{tool} gave no answer within {_ANSWER_S:g} s: mend the driver of the GPUs") from error


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--name", required=True)
    options = parser.parse_args()
    try:
        node = read_node_file(options.file).node(options.name)
        extras = extras_of((share.role for share in node.shares), has_gpu=_has_gpu())
    except ConfigurationError as error:
        print(f"millrace: {error}", file=sys.stderr)
        return 78
    print(",".join(extras))
    return 0


if __name__ == "__main__":
    sys.exit(main())
