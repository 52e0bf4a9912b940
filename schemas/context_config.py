"""Configures what the policy is shown of an episode, and the actions it may answer with."""

from dataclasses import dataclass
from typing import Literal

from schemas.requirement import require


@dataclass(frozen=True, kw_only=True)
class ContextConfig:
    interaction_mode: Literal["coordinates", "set_of_marks"] = "coordinates"
    """How actions name their targets: points on a 0-1000 grid, or the numbers of elements that are marked in the
    screenshot."""
    actions: str = "standard"
    """`standard`: WebGym's eight. `extended`: also double and right click, drag, keys, select, tabs and reading text."""
    accessibility_tree: bool = False
    """Give the page's accessibility tree to the policy as text, in the form that `env_config.use_rich_actree` says."""
    num_rounds: int = 4
    """Latest rounds kept with their screenshots; older ones become one line of text each."""

    def __post_init__(self) -> None:
        require(self.num_rounds >= 0, f"context_config.num_rounds is {self.num_rounds}: write 0 or more")
