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
    """`standard`: WebGym's eight. `extended`: also double and right click, drag, keys, select, tabs and reading text.
    `openwebrl`: OpenWebRL's thirteen functions."""
    accessibility_tree: bool = False
    """Give the page's accessibility tree to the policy as text, in the form that `env_config.use_rich_actree` says."""
    page_errors: bool = False
    """Tell the policy what failed on the page since it last looked: errors of the console, exceptions that nothing caught,
    requests without an answer or with a status of 400 and more. Addresses are told without what stands behind their `?`."""
    num_rounds: int = 4
    """Latest rounds kept with their screenshots; of older ones is kept what `history` says."""
    history: Literal["line", "none", "action", "response", "thinking"] = "line"
    """Of rounds without a screenshot. `line`: one line each, beside the task. `none`: nothing. The others keep every round as
    a turn of its own with what its actions came to, and of the answer the tool calls (`action`), all but its thinking
    (`response`), or all (`thinking`)."""
    answer_form: Literal["text", "webarena_verified"] = "text"
    """Of the final answer. `webarena_verified`: the system message ends with the JSON object that this benchmark asks for."""
    max_calls: int = 1
    """Tool calls of one answer that are carried out, in order; with 1, the first that can be read."""

    def __post_init__(self) -> None:
        require(self.num_rounds >= 0, f"context_config.num_rounds is {self.num_rounds}: write 0 or more")
        require(1 <= self.max_calls <= 100, f"context_config.max_calls is {self.max_calls}: write 1 to 100")

    @property
    def keeps_turns(self) -> bool:
        """Rounds without a screenshot stay turns."""
        return self.history in ("action", "response", "thinking")
