"""Success replay: a group of which nobody succeeded is given an earlier success of its task (ARPO). Pure.

What it gives is a function of the judgements in their order, less what it was told to forget, and stands in checkpoints.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from msgspec import structs

from schemas.ids import TaskId
from trainer.episodes.groups import Group, Member


class SuccessReplay:
    """The newest successful episode of each of the latest `size` tasks that were solved."""

    def __init__(
        self, size: int, kept: Iterable[Member] = (), *, plays_for: Callable[[Member], bool] = lambda _: True
    ) -> None:
        """`size` 0: nothing is kept, and groups stay as they are. `kept`: what another object called so. `plays_for`: False
        for members that must not be trained on."""
        self._size = size
        self._plays_for = plays_for
        self._by_task: OrderedDict[TaskId, Member] = OrderedDict()
        for member in kept:
            self._keep(member)

    @property
    def kept(self) -> tuple[Member, ...]:
        """The longest kept first."""
        return tuple(self._by_task.values())

    def completed(self, groups: Sequence[Group]) -> list[Group]:
        """The groups, those without a success with the one of their task behind their members. Then theirs are kept."""
        found = [self._completed(group) for group in groups]
        for group in groups:
            for member in group.members:
                if member.success and not member.greedy:
                    self._keep(member)
        return found

    def earlier(self, group: Group) -> Member | None:
        """What the group would be given."""
        if any(member.success and not member.greedy for member in group.members):
            return None
        return self._by_task.get(group.members[0].task)

    def forget(self, success: Member) -> None:
        del self._by_task[success.task]

    def _completed(self, group: Group) -> Group:
        earlier = self.earlier(group)
        return Group((*group.members, structs.replace(earlier, replayed=True))) if earlier is not None else group

    def _keep(self, member: Member) -> None:
        if not self._plays_for(member):
            return
        self._by_task[member.task] = member
        self._by_task.move_to_end(member.task)
        while len(self._by_task) > self._size:
            self._by_task.popitem(last=False)
