"""What a node file says to Slurm alone: options of sbatch, for all nodes and for one.

slurm:                                      # beside `nodes`, and in a node, where each value is in place of the file's
  {account: lab, partition: gpu, time: '24:00:00', cpus-per-task: 16, mem: 64G}
"""

import re
from collections.abc import Callable, Mapping

from schemas.errors import ConfigurationError

_NAME = re.compile(r"[a-z][a-z-]*\Z")
_VALUE = re.compile(r"[A-Za-z0-9._:,@/+=%\[\]()*-]+\Z")
_TAKEN = ("gpus", "job-name", "nodelist", "nodes", "ntasks", "output", "requeue", "signal")
"""Options that the script has of its own."""


def read_slurm_settings(content: object, where: str, wrong: Callable[[str], ConfigurationError]) -> Mapping[str, str]:
    """Raises what `wrong` makes of a sentence."""
    if not isinstance(content, dict):
        raise wrong(f"{where} holds no options: write sbatch's own by their long names, as in {{partition: gpu, mem: 64G}}")
    for name, value in content.items():
        if not isinstance(name, str) or not _NAME.match(name):
            raise wrong(
                f"{where} has the key {name!r}: write an option of sbatch by its long name without --, as cpus-per-task"
            )
        if name in _TAKEN:
            raise wrong(f"{where}.{name}: the script says that itself, from the node's roles")
        if not isinstance(value, str | int) or isinstance(value, bool) or not _VALUE.match(str(value)):
            raise wrong(f"{where}.{name} is {value!r}: write one word, in quotes where it has colons, as '24:00:00'")
    return {name: str(value) for name, value in content.items()}
