"""Chooses the form of answer that is asked of a model: the strictest that it has taken."""

from typing import Final, Literal

Form = Literal["json_schema", "json_object", "text"]
"""How strictly the endpoint holds the model to the schema."""

FORMS: Final[tuple[Form, ...]] = ("json_schema", "json_object", "text")
"""From strict to free."""


class FormMemory:
    """What one model at one endpoint takes, learnt from its answers.

    Invariant: a form that has been taken once is asked for first ever after; a question that is refused in it is a
    peculiar question. A refusal that no other form cured is not met with other forms again.
    """

    def __init__(self, wanted: Form | Literal["auto"]) -> None:
        self._forms = FORMS if wanted == "auto" else (wanted,)
        self._first = 0
        self._is_proven = False
        self._known_to_take = set[tuple[Form, str]]()
        """Forms, each with the name of a schema."""
        self._incurable = dict[str, str]()
        """By schema, the last reason for which a question was refused in plain text, which demands no form."""

    @property
    def to_try(self) -> tuple[Form, ...]:
        """For one question, in this order."""
        return self._forms[self._first :]

    def may_cure(self, form: Form, schema: str, refusal: str) -> bool:
        """Whether a question that was refused in one form, for this reason, may be taken in the next."""
        if form == "text":
            self._incurable[schema] = refusal
        is_incurable = self._is_proven and self._incurable.get(schema) == refusal
        return not is_incurable and (form, schema) not in self._known_to_take

    def taken(self, form: Form, schema: str) -> None:
        self._known_to_take.add((form, schema))
        index = self._forms.index(form)
        if not self._is_proven or index < self._first:
            self._first = index
        self._is_proven = True
