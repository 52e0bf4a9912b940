"""How a drill ends that proves nothing."""

from schemas.errors import MillraceError


class DrillFailed(MillraceError):
    """A role ended in a way that only a person can mend; no fault may come to that."""
