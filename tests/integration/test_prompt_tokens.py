"""Our prompt tokens are those of the model's own transformers processor."""

import io
from pathlib import Path

import pytest
from PIL import Image

from agents.demonstration import demonstrated_action
from agents.engine import ChatMessage, GenerationRequest
from agents.oracle_engine import OracleEngine
from agents.parsing import parse_response
from agents.prompts import system_prompt
from agents.tokens import PromptTokenizer
from schemas.errors import ConfigurationError, PromptRefused
from schemas.messages import Action, ActionKind, Element, Observation, Screenshot
from tests import builders
from tests.support.agents import tiny_models
from tests.support.agents.action_spaces import MARKS

pytestmark = [pytest.mark.integration, pytest.mark.anyio]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.build(tmp_path_factory.mktemp("tiny"), seed=1)


def processor_tokens(folder: Path, messages: tuple[ChatMessage, ...]) -> list[int]:
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(folder)
    chat = [
        {
            "role": message.role,
            "content": [{"type": "text", "text": p} if isinstance(p, str) else {"type": "image"} for p in message.content],
        }
        for message in messages
    ]
    text = processor.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    screenshots = [Image.open(io.BytesIO(p.data)) for m in messages for p in m.content if isinstance(p, Screenshot)]
    tokens: list[int] = list(processor(text=[text], images=screenshots or None)["input_ids"][0])
    return tokens


def conversation(*sizes: tuple[int, int]) -> tuple[ChatMessage, ...]:
    messages = [ChatMessage("system", (system_prompt("vanilla"),))]
    for number, (width, height) in enumerate(sizes):
        messages.append(ChatMessage("user", ("Task: grün\n", tiny_models.screenshot(number, width, height))))
        messages.append(ChatMessage("assistant", ("Action: x.",)))
    return (*messages, ChatMessage("user", ("and now?",)))


@pytest.mark.parametrize(
    "sizes", [(), ((160, 210),), ((160, 210), (1280, 768)), ((33, 900), (16, 16), (1000, 31), (112, 112), (48, 80))]
)
def test_tokens_equal_the_processors(folder: Path, sizes: tuple[tuple[int, int], ...]) -> None:
    messages = conversation(*sizes)
    assert PromptTokenizer(folder).expanded_prompt(messages) == processor_tokens(folder, messages)


def test_control_tokens_are_suppressed_except_the_end_of_a_turn(folder: Path) -> None:
    tokenizer = PromptTokenizer(folder)
    assert tokenizer.image_token in tokenizer.suppressed
    assert tokenizer.end_of_turn not in tokenizer.suppressed
    assert tokenizer.stop_tokens == {tokenizer.end_of_turn}


async def test_a_demonstration_clicks_into_the_box(folder: Path) -> None:
    import msgspec

    box = (40, 90, 50, 34)
    task, tokenizer = builders.task(), PromptTokenizer(folder)
    engine = OracleEngine(folder)
    for step in range(3):
        observation = msgspec.structs.replace(builders.observation(task, step), oracle=box)
        messages = (ChatMessage("user", ("Task: click the button\n", tiny_models.screenshot(step))),)
        generation = await engine.generate(GenerationRequest(messages=messages, observation=observation))
        action = parse_response(generation.text).action
        assert action.point is not None
        x, y = action.point[0] * 160 / 1000, action.point[1] * 210 / 1000
        assert box[0] < x < box[0] + box[2]
        assert box[1] < y < box[1] + box[3]
        assert all(value % 10 == 0 for value in action.point)
        assert list(generation.prompt_tokens) == processor_tokens(folder, messages)
        assert generation.completion_tokens[-1] == tokenizer.end_of_turn
        assert tokenizer.decode(generation.completion_tokens) == generation.text
        assert not generation.logprobs
    with pytest.raises(PromptRefused, match="no scripted oracle"):
        demonstrated_action(builders.observation(task))


async def test_a_demonstration_clicks_the_marked_element_that_is_innermost(folder: Path) -> None:
    import msgspec

    def marked(*boxes: tuple[int, int, int, int]) -> Observation:
        elements = tuple(Element(id=number, tag="div", text="", box=box) for number, box in enumerate(boxes, start=1))
        return msgspec.structs.replace(builders.observation(builders.task()), oracle=(40, 90, 50, 34), elements=elements)

    engine = OracleEngine(folder, space=MARKS)
    messages = (ChatMessage("user", ("Task: click the button\n", tiny_models.screenshot(1))),)
    observation = marked((0, 0, 160, 210), (40, 90, 50, 34), (60, 100, 70, 34), (41, 91, 5, 5))
    generation = await engine.generate(GenerationRequest(messages=messages, observation=observation))
    assert parse_response(generation.text, MARKS).action == Action(kind=ActionKind.CLICK, element=2)
    assert generation.text.startswith("Action: Click the div.\n"), "what it names is what stands on the element"
    with pytest.raises(PromptRefused, match="no marked element"):
        await engine.generate(GenerationRequest(messages=messages, observation=marked((41, 91, 5, 5))))


async def test_a_demonstration_takes_the_oracles_step_in_the_words_of_the_run(folder: Path) -> None:
    import msgspec

    typing = Action(kind=ActionKind.TYPE, point=(312.5, 500.0), text="hello")
    element = Element(id=7, tag="input", text="", box=(40, 100, 20, 10))
    seen = msgspec.structs.replace(builders.observation(builders.task()), oracle_action=typing, elements=(element,))
    messages = (ChatMessage("user", ("Task: say hello\n", tiny_models.screenshot(1))),)
    by_point = await OracleEngine(folder).generate(GenerationRequest(messages=messages, observation=seen))
    assert by_point.text.startswith("Action: Type 'hello' at [312, 500].\n")
    assert parse_response(by_point.text).action == Action(kind=ActionKind.TYPE, point=(312, 500), text="hello")
    by_number = await OracleEngine(folder, space=MARKS).generate(GenerationRequest(messages=messages, observation=seen))
    assert parse_response(by_number.text, MARKS).action == Action(kind=ActionKind.TYPE, element=7, text="hello")
    pressing = msgspec.structs.replace(seen, oracle_action=Action(kind=ActionKind.PRESS, keys=("Tab",)))
    with pytest.raises(PromptRefused, match=r"cannot be followed: the standard actions have no press"):
        await OracleEngine(folder).generate(GenerationRequest(messages=messages, observation=pressing))


def test_a_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigurationError, match=r"tokenizer\.json|chat template"):
        PromptTokenizer(tmp_path / "absent")
