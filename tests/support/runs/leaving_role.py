"""Roles that a test starts by hand, and tells to leave."""

import os

from ops.processes.guard import guard_command
from ops.processes.role_process import millrace_command
from tests.deadlines import HANGS_S


def role_command(*arguments: str) -> list[str]:
    """That of `millrace <arguments>`, under a guard that kills it only where it hangs: its exit code is its own."""
    return guard_command(millrace_command(arguments), parent=os.getpid(), grace_s=HANGS_S)
