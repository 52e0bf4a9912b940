"""Chooses the form of answer that is asked of a model: the strictest that it has taken."""

from typing import Final, Literal

Form = Literal["json_schema", "json_object", "text"]
"""How strictly the endpoint holds the model to the schema."""

FORMS: Final[tuple[Form, ...]] = ("json_schema", "json_object", "text")
"""From strict to free."""


class FormMemory:
    """What one model at one endpoint takes, learnt from its answers.

    Invariant: a form that has been taken once is asked for first ever after; a question that is refused in it is a
    peculiar question.
    """

    def __init__(self, wanted: Form | Literal["auto"]) -> None:
        self._forms = FORMS if wanted == "auto" else (wanted,)
        self._first = 0
        self._is_proven = False

    @property
    def to_try(self) -> tuple[Form, ...]:
        """For one question, in this order."""
        return self._forms[self._first :]

    def taken(self, form: Form) -> None:
        index = self._forms.index(form)
        if not self._is_proven or index < self._first:
            self._first = index
        self._is_proven = True
