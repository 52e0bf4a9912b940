"""DeepShop's evaluator: product attributes, filters and sorting, each judged where the request has such a part.

A task whose facts belong to groups that name the parts ("attribute", "filter", "sort") is asked about part by part, as
DeepShop does; of any other one question finds the parts and judges each.

Source: github.com/youganglyu/DeepShop, src/evaluation: WebVoyager's question for each part, with what it demands in place of
the task and 15 screenshots; all that are not "None" have to hold.
"""

from collections.abc import Mapping, Sequence

from judges.published.forms import TEXT, Fields, Form, two_words
from judges.published.hearing import Hearing
from judges.published.judge import Evaluator
from judges.rubric.asking import Finding, MalformedVerdict
from judges.rubric.verdicts import chosen, worded
from schemas.messages import Fact

_NUM_SCREENSHOTS = 15
_MET, _NOT_MET, _ABSENT = "SUCCESS", "NOT SUCCESS", "NONE"
_PARTS = {"attribute": "attributes", "filter": "filters", "sort": "sorting"}
"""By what the name of a group of facts holds."""
_VERDICT = two_words("part_verdict", passed=_MET, failed=_NOT_MET)


def parts_of(facts: Sequence[Fact]) -> Mapping[str, str] | None:
    """What each part demands, in their order; None where the facts name no parts: there is no fact, or one belongs to none.

    A demand of "None" is none: so its data has it.
    """
    if not facts:
        return None
    demands: dict[str, list[str]] = {part: [] for part in _PARTS.values()}
    for fact in facts:
        named = [part for word, part in _PARTS.items() if word in fact.group.casefold()]
        if len(named) != 1:
            return None
        if fact.description.strip().casefold() not in ("", "none"):
            demands[named[0]].append(fact.description)
    return {part: "; ".join(texts) for part, texts in demands.items() if texts}


def _verdicts() -> Form[Finding]:
    def reads(fields: Fields) -> Finding:
        verdicts = {part: chosen(fields, part, (_MET, _NOT_MET, _ABSENT)) for part in _PARTS.values()}
        present = [verdict for verdict in verdicts.values() if verdict != _ABSENT]
        if not present:
            raise MalformedVerdict("the request has none of the parts")
        told = ", ".join(f"{part}: {verdict}" for part, verdict in verdicts.items())
        return Finding(_NOT_MET not in present, f"{told}. {worded(fields, 'reasoning')}")

    words = {"type": "string", "enum": [_MET, _NOT_MET, _ABSENT]}
    properties = {"reasoning": TEXT, **dict.fromkeys(_PARTS.values(), words)}
    return Form(name="part_verdicts", properties=properties, finding=Finding, reads=reads)


_VERDICTS = _verdicts()


async def _examine(hearing: Hearing) -> bool:
    parts = parts_of(hearing.task.facts)
    if parts is not None and not parts:
        return hearing.note("parts", passed=True, reasoning="the request has none of the parts, so that nothing can fail")
    if not hearing.is_answered():
        return False
    material, shown = hearing.material, hearing.shots[-_NUM_SCREENSHOTS:]
    seen = (material.answer(), *material.screenshots(shown))
    count = str(len(shown))
    if parts is None:
        content = (material.task(), *seen, material.text("parts", count=count))
        return await hearing.decide(_VERDICTS, content, stage="parts", shown=shown)
    for part, demand in parts.items():
        task, question = material.task(instruction=material.written(demand)), material.text("part", count=count, part=part)
        if not await hearing.decide(_VERDICT, (task, *seen, question), stage=part, shown=shown):
            return False
    return True


DEEPSHOP = Evaluator(
    _examine,
    {
        "system": frozenset(),
        "task": frozenset({"opening", "closing", "instruction"}),
        "answer": frozenset({"answer"}),
        "part": frozenset({"count", "part"}),
        "parts": frozenset({"count"}),
    },
)
