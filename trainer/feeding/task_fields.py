"""The fields of a task file's line, in WebGym's schema: the one description that reading, checking and docs/tasks.md go by."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trainer.feeding.problems import Unfit
from trainer.feeding.task_checks import read_checks
from trainer.feeding.task_values import (
    answer,
    anything,
    evaluation,
    label_like,
    mapping,
    name_like,
    normal_facts,
    task_id,
    text_like,
    website,
    whole_like,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskField:
    name: str
    meaning: str
    read: Callable[[object], object]
    """Raises `Unfit`."""
    attribute: str = ""
    """Of `TaskSpec`; empty: the feeder does not read it."""
    write: str = ""
    """What to write where it is missing; empty: it may be left out."""
    default: object = None
    """As it is read; where it may be left out."""

    def of(self, fields: Mapping[str, object]) -> object:
        """Its value in a line. Raises `Unfit`."""
        if self.name in fields:
            return self.read(fields[self.name])
        if self.write:
            raise Unfit(f"it is missing; write {self.write}")
        return self.default


FIELDS = (
    TaskField(
        name="task_id",
        meaning="a whole number, or up to 96 letters, digits, `_` and `-`; unique in the file",
        read=task_id,
        attribute="task",
        write="a whole number or a short name, unique in the file",
    ),
    TaskField(
        name="task_name",
        meaning="what the agent is asked to do",
        read=text_like("Find the opening hours"),
        attribute="instruction",
        write="a text such as 'Find the opening hours'",
    ),
    TaskField(
        name="website",
        meaning="where an episode starts: a http(s) address (`https://` is added), or `suite:page?query`",
        read=website,
        attribute="website",
        write="a text such as 'https://example.org'",
    ),
    TaskField(
        name="domain",
        meaning="topic, as reports group by it",
        read=name_like("shopping"),
        attribute="domain",
        write="a text such as 'shopping'",
    ),
    TaskField(
        name="subdomain",
        meaning="narrower topic: the sampler `frontier` learns of a task from others of its subdomain",
        read=name_like("books"),
        attribute="subdomain",
        write="a text such as 'books'",
    ),
    TaskField(
        name="difficulty",
        meaning="whole number: 1 to 3 easy, 4 to 6 medium, 7 and more hard, which decides the steps; 0: unknown, as easy",
        read=whole_like(1),
        attribute="difficulty",
        write="a whole number such as 1",
    ),
    TaskField(
        name="evaluator_reference",
        meaning="facts that `rubric_v1` has proved: a text, texts, `{description, difficulty}`, or groups "
        "`{id, description, facts}`; none: the instruction is the only one",
        read=normal_facts,
        attribute="facts",
        write="a text, a list of texts, or a list of fact groups",
    ),
    TaskField(
        name="definite_answer",
        meaning="reference answer, or null: what `answer_*` judges compare with, and one more fact of `rubric_v1`",
        read=answer,
        attribute="reference_answer",
        write="the reference answer, or null",
    ),
    TaskField(
        name="attempt_level",
        meaning="where the sampler `adaptive` begins to count attempts",
        read=whole_like(0),
        attribute="attempt_level",
        default=0,
    ),
    TaskField(
        name="distribution",
        meaning="`id`: as training's tasks are; `ood`: out of their distribution; or a name of your own; empty: not said",
        read=label_like("ood"),
        attribute="distribution",
        default="",
    ),
    TaskField(
        name="split",
        meaning="split as its publisher names it, such as `train`, `test`, `hard`",
        read=label_like("test"),
        attribute="split",
        default="",
    ),
    TaskField(
        name="checks",
        meaning="conditions without a model: a list of `{kind, expected, match, expression}` "
        "([demo_site](demo_site.md#tasks-and-checks))",
        read=read_checks,
        attribute="checks",
        default=(),
    ),
    TaskField(
        name="evaluation",
        meaning="an object that the judge of a benchmark goes by, such as `webarena_verified_v1`; written by `tasks prepare`",
        read=evaluation,
        attribute="evaluation",
        default="",
    ),
    TaskField(name="metadata", meaning="an object for people and programs of your own; not read here", read=mapping),
    TaskField(name="benchmark_name", meaning="where the task comes from; not read here", read=anything),
    TaskField(
        name="task_id_decomposed_from", meaning="WebGym's: the task that this one is a part of; not read here", read=anything
    ),
)
NAMES = tuple(field.name for field in FIELDS)


def read_fields(fields: Mapping[str, object]) -> tuple[dict[str, object], list[tuple[str, str]]]:
    """A line's values by attribute of `TaskSpec`, and all that is wrong with them: field and sentence."""
    values: dict[str, object] = {}
    wrong = []
    for field in FIELDS:
        try:
            value = field.of(fields)
        except Unfit as error:
            wrong.append((field.name, str(error)))
        except RecursionError:
            wrong.append((field.name, "its lists and objects stand too deep in each other; write fewer levels"))
        else:
            if field.attribute:
                values[field.attribute] = value
    return values, wrong
