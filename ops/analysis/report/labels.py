"""Labels episodes with what they are counted under. Pure.

Addresses and domains come from task files and may hold anything: they are values here, and whoever shows them escapes them.
"""

from schemas.env_config import difficulty_class
from schemas.ids import PolicyVersion
from schemas.messages import Split, Task, Trajectory
from schemas.site import site_of

UNKNOWN = "unknown"
TRAIN, EVAL, GREEDY, DEMONSTRATION = "train", "eval", "greedy", "demonstration"
KINDS = (TRAIN, EVAL, GREEDY, DEMONSTRATION)
"""Of episodes, in the order of tables. What is greedy is a baseline of training; a demonstration no policy played."""
DISTRIBUTIONS = {"id": "in (id)", "ood": "out (ood)"}
"""Names of a task file's, for tables."""
DIFFICULTIES = ("easy", "medium", "hard", UNKNOWN)


def kind_of(task: Task) -> str:
    if task.demonstrate:
        return DEMONSTRATION
    if task.split is Split.EVAL:
        return EVAL
    return GREEDY if task.greedy else TRAIN


def difficulty_of(task: Task) -> str:
    return difficulty_class(task.difficulty)


def domain_of(task: Task) -> str:
    return task.domain or UNKNOWN


def distribution_of(task: Task) -> str:
    return task.distribution or UNKNOWN


def published_split_of(task: Task) -> str:
    return task.published_split or UNKNOWN


def site_label(task: Task) -> str:
    return site_of(task.website) or UNKNOWN


def family_of(task: Task) -> str:
    """Suite and page of what the browser workers serve, as in `demo:click_button`; all addresses are one family.

    Example: `https://example.org/a?b` is `web`.
    """
    head, colon, rest = task.website.partition(":")
    if not colon or not rest[:1].isalpha() or not head.replace("-", "_").isidentifier():
        return "web"
    return task.website.partition("?")[0]


def version_of(trajectory: Trajectory) -> PolicyVersion:
    """Of an evaluation round its own; else the one that sampled the first step; else the newest when it was admitted."""
    task = trajectory.task
    if task.split is Split.EVAL or not trajectory.versions:
        return task.policy_version
    return trajectory.versions[0]
