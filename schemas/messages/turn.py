"""Defines turns: what browser workers keep sites' limits by."""

from schemas.ids import WorkerId
from schemas.messages.structs import Message
from schemas.ranges import Worker


class SiteTurn(Message, frozen=True, tag="turn/1"):
    """A slot of a site's limit is taken, until this has aged out or its writer removed it."""

    site: str
    egress: str = ""
    """As `Trajectory.egress`."""
    worker: Worker = WorkerId("")
    draw: str = ""
    """Differs every time that anybody takes a slot or renews it."""
