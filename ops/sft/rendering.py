"""Conversations to the tokens that a model is trained on, by its own tokenizer and chat template.

Invariant: each answer is rendered as the template renders one that it just asked for, and stands so in every later prompt.
Templates that leave thoughts out of earlier answers leave nothing out here: what is imitated was said with them in view.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import jinja2

from agents.tokens import PromptTokenizer
from ops.sft.conversation import Conversation, Message, Turn
from ops.sft.findings import BadRecord
from schemas.messages import Screenshot

_STAND_IN = "\ue000answer {}\ue001"
"""For an earlier answer while the template works; of a private area of Unicode, so that no page's text holds it."""
_STOOD_IN = re.compile(_STAND_IN.format(r"(\d+)"))
_EMPTY_THOUGHT = re.compile(r"<think>\s*</think>\s*\Z")
"""What templates write before an earlier answer that shows them no thought; a stand-in shows none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedTurn:
    """One answer, ready to be trained on."""

    seen: Screenshot | None
    """What came since the last answer."""
    shown: tuple[int, ...]
    """Turns whose screenshots stand in the prompt, in order."""
    prompt: str
    """With one placeholder a screenshot."""
    prompt_tokens: tuple[int, ...]
    """With a placeholder for every image token."""
    answer: str
    answer_tokens: tuple[int, ...]
    """With the end of the turn; empty: it is not trained on."""


@dataclass(frozen=True, slots=True)
class _Given:
    """An answer, as it stands in later prompts."""

    opening: str
    """What the template writes when it asks for it, as `<|im_start|>assistant` and `<think>`."""
    text: str


@dataclass(frozen=True)
class _Earlier:
    """What the turns before came to, in one conversation."""

    pieces: dict[str, list[int]] | None
    """Tokens of texts that a control token ends; None: prompts are encoded whole."""
    answers: list[_Given] = field(default_factory=list)
    openings: dict[object, str] = field(default_factory=dict)
    """By the role of the message that is answered."""


@dataclass(frozen=True, kw_only=True)
class Renderer:
    """For one model."""

    tokenizer: PromptTokenizer
    num_screenshots: int | None = None
    """Latest screenshots that a prompt keeps; None: all."""
    _control: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        longest_first = sorted(self.tokenizer.control_texts, key=len, reverse=True)
        object.__setattr__(self, "_control", re.compile("|".join(map(re.escape, longest_first)) or r"(?!)"))

    def takes(self, tools: Sequence[Mapping[str, object]]) -> bool:
        """Whether the model's chat template does anything with tools."""
        messages = (Message(role="user", parts=("hello",)),)
        asked = _template_messages(messages, dropped=0)
        bare, equipped = Conversation(messages=messages), Conversation(messages=messages, tools=tuple(tools))
        return self._rendered(asked, bare, asks=True) != self._rendered(asked, equipped, asks=True)

    def turns(self, conversation: Conversation) -> list[RenderedTurn]:
        """Raises `BadRecord` for what the model's template cannot say."""
        self._refuse_control_texts(conversation)
        earlier = _Earlier(pieces={})
        turns = [self._turn(turn, conversation, earlier) for turn in conversation.turns()]
        if self._encoded(turns[-1].prompt, earlier) != self.tokenizer.encode(turns[-1].prompt):
            # A tokenizer that control tokens do not part texts for.
            earlier = _Earlier(pieces=None)
            turns = [self._turn(turn, conversation, earlier) for turn in conversation.turns()]
        return turns

    def _turn(self, turn: Turn, conversation: Conversation, earlier: _Earlier) -> RenderedTurn:
        """Puts how the answer stands in later prompts behind the earlier ones."""
        kept = len(turn.shown) if self.num_screenshots is None else self.num_screenshots
        dropped = max(0, len(turn.shown) - kept)
        asked = _template_messages(turn.context, dropped=dropped)
        open_prompt = self._rendered(asked, conversation, asks=True)
        answered = self._rendered([*asked, _template_message(turn.answer, iter(()))], conversation, asks=False)
        if not answered.startswith(open_prompt):
            raise BadRecord(f"the model's chat template does not put answer {turn.number + 1} behind its prompt")
        said, ended, behind = answered[len(open_prompt) :].rpartition(self.tokenizer.end_of_turn_text)
        answer = said if ended else behind.removesuffix("\n")
        if not answer.strip():
            raise BadRecord(f"answer {turn.number + 1} is empty")
        self._refuse_lost_calls(turn, answer)
        prompt = self._with_answers(open_prompt, earlier.answers)
        earlier.answers.append(_Given(self._opening(asked, open_prompt, conversation, earlier), answer))
        tokens = (*self.tokenizer.encode(answer), self.tokenizer.end_of_turn)
        screenshots = _screenshots(turn.context)[dropped:]
        prompt_tokens = self._encoded(prompt, earlier)
        if prompt_tokens.count(self.tokenizer.image_token) != len(screenshots):
            raise BadRecord(f"the prompt of answer {turn.number + 1} does not show each of its screenshots once")
        return RenderedTurn(
            seen=turn.seen,
            shown=turn.shown[dropped:],
            prompt=prompt,
            prompt_tokens=tuple(self.tokenizer.expanded(prompt_tokens, screenshots)),
            answer=answer,
            answer_tokens=tokens if turn.answer.trained else (),
        )

    def _opening(
        self, asked: Sequence[Mapping[str, object]], open_prompt: str, conversation: Conversation, earlier: _Earlier
    ) -> str:
        """What the template writes behind the conversation when it asks for an answer."""
        role = asked[-1]["role"] if asked else None
        known = earlier.openings.get(role)
        if known is None or not open_prompt.endswith(known):
            before = self._rendered(asked, conversation, asks=False) if asked else ""
            if not open_prompt.startswith(before):
                raise BadRecord("the model's chat template does not ask for an answer behind the conversation")
            earlier.openings[role] = known = open_prompt[len(before) :]
        return known

    def _with_answers(self, rendered: str, answers: Sequence[_Given]) -> str:
        """Raises `BadRecord` where the template did not put every earlier answer in, once, in order, and as it was given."""
        pieces = _STOOD_IN.split(rendered)
        stood = pieces[1::2]
        if stood != [str(number) for number in range(len(answers))]:
            wrong = next((number for number in range(len(answers)) if stood.count(str(number)) != 1), 0)
            raise _not_kept(wrong)
        found: list[str] = []
        for number, (before, given) in enumerate(zip(pieces[:-1:2], answers, strict=True)):
            found += (self._opened(before, given.opening, number), given.text)
        return "".join((*found, pieces[-1]))

    def _opened(self, before: str, opening: str, number: int) -> str:
        """What stands before an earlier answer in a later prompt, opened as when it was asked for.

        Templates may open it in other words there: without a thought, or with an empty one.
        """
        kept = _EMPTY_THOUGHT.sub("", before)
        begun = next(end for end in range(len(opening), -1, -1) if kept.endswith(opening[:end]))
        missing = opening[begun:]
        if opening and (begun == 0 or self._control.search(missing)):
            raise _not_kept(number)
        return kept + missing

    def _encoded(self, text: str, earlier: _Earlier) -> list[int]:
        """Prompts of one conversation have most of their pieces in common, and each is encoded once."""
        if earlier.pieces is None:
            return self.tokenizer.encode(text)
        found: list[int] = []
        ends = [match.end() for match in self._control.finditer(text)]
        for begin, end in zip([0, *ends], [*ends, len(text)], strict=True):
            piece = text[begin:end]
            if piece not in earlier.pieces:
                earlier.pieces[piece] = self.tokenizer.encode(piece)
            found += earlier.pieces[piece]
        return found

    def _rendered(self, messages: Sequence[Mapping[str, object]], conversation: Conversation, *, asks: bool) -> str:
        try:
            return self.tokenizer.render(messages, tools=conversation.tools, asks=asks)
        except (jinja2.TemplateError, TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise BadRecord(f"the model's chat template cannot render it: {error}") from error

    def _refuse_control_texts(self, conversation: Conversation) -> None:
        said: list[tuple[str, object]] = [("a tool", list(conversation.tools))]
        for number, message in enumerate(conversation.messages, start=1):
            said.append((f"message {number}", [message.text, list(message.calls), message.named]))
        for what, value in said:
            found = next(filter(None, map(self._control.search, _texts_in(value))), None)
            if found is not None:
                raise BadRecord(f"{what} spells {found[0]}, which the model would read as a control token")

    def _refuse_lost_calls(self, turn: Turn, answer: str) -> None:
        for call in turn.answer.calls:
            function = call["function"]
            assert isinstance(function, Mapping)
            if str(function["name"]) not in answer:
                raise BadRecord(f"the model's chat template leaves out the call of answer {turn.number + 1}")


def _template_messages(context: Sequence[Message], *, dropped: int) -> list[Mapping[str, object]]:
    """Earlier answers as stand-ins; without the oldest `dropped` screenshots."""
    keeps = iter([False] * dropped + [True] * (len(_screenshots(context)) - dropped))
    found, number = list[Mapping[str, object]](), 0
    for message in context:
        if message.role == "assistant":
            found.append({"role": "assistant", "content": _STAND_IN.format(number)})
            number += 1
        else:
            found.append(_template_message(message, keeps))
    return found


def _template_message(message: Message, keeps: Iterator[bool]) -> Mapping[str, object]:
    """`keeps`: of each screenshot, whether it is shown."""
    kept = [part for part in message.parts if isinstance(part, str) or next(keeps)]
    content: object = "".join(part for part in kept if isinstance(part, str))
    if any(isinstance(part, Screenshot) for part in kept):
        content = [{"type": "text", "text": part} if isinstance(part, str) else {"type": "image"} for part in kept]
    calls = {"tool_calls": list(message.calls)} if message.calls else {}
    return {"role": message.role, "content": content, **message.named, **calls}


def _not_kept(number: int) -> BadRecord:
    return BadRecord(f"the model's chat template does not keep answer {number + 1} in later prompts as it was given")


def _texts_in(value: object) -> Iterator[str]:
    """All text in nested objects and lists, names too."""
    left = [value]
    while left:
        match left.pop():
            case str() as text:
                yield text
            case Mapping() as fields:
                left += [*fields.keys(), *fields.values()]
            case list() | tuple() as items:
                left += items


def _screenshots(messages: Sequence[Message]) -> list[Screenshot]:
    return [screenshot for message in messages for screenshot in message.screenshots]
