"""What a node file says to Slurm alone: options of sbatch, for all nodes and for one.

slurm:                                      # beside `nodes`, and in a node, where each value is in place of the file's
  {account: lab, partition: gpu, time: '24:00:00', cpus-per-task: 16, mem: 64G, exclusive: true}
"""

import re
from collections.abc import Callable, Mapping

from schemas.errors import ConfigurationError

_NAME = re.compile(r"[a-z][a-z-]*\Z")
_VALUE = re.compile(r"[A-Za-z0-9._:,@/+=%\[\]()*-]+\Z")
_TAKEN = ("gpus", "job-name", "nodelist", "nodes", "ntasks", "output", "requeue", "signal")
"""Options that the script has of its own."""
_TIMES = ("begin", "deadline", "time", "time-min")
"""In YAML 24:00:00 without quotes is the number 86400, which sbatch takes for minutes."""


def read_slurm_settings(content: object, where: str, wrong: Callable[[str], ConfigurationError]) -> Mapping[str, str]:
    """The options by their names, each as sbatch takes it: --mem=64G, --exclusive, or nothing where a node takes one back.

    Raises what `wrong` makes of a sentence.
    """
    if not isinstance(content, dict):
        raise wrong(f"{where} holds no options: write sbatch's own by their long names, as in {{partition: gpu, mem: 64G}}")
    options: dict[str, str] = {}
    for name, value in content.items():
        if not isinstance(name, str) or not _NAME.match(name):
            raise wrong(
                f"{where} has the key {name!r}: write an option of sbatch by its long name without --, as cpus-per-task"
            )
        if name in _TAKEN:
            raise wrong(f"{where}.{name}: the script says that itself, from the node's roles")
        if isinstance(value, bool):
            options[name] = f"--{name}" if value else ""
        elif (isinstance(value, str) and _VALUE.match(value)) or (isinstance(value, int) and name not in _TIMES):
            options[name] = f"--{name}={value}"
        else:
            raise wrong(f"{where}.{name} is {value!r}: write one word, in quotes where it has colons, as '24:00:00'")
    return options
