"""Conversations as other people store them, and the tokenizer of a model that thinks and calls tools."""

import base64
import io
import json
import random
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from ops.quickstart.tiny_model import build_tiny_model, sentence_tokenizer

THINKING_TEMPLATE = """\
{%- if tools -%}
<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}

{% endif %}<tools>
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}</tools><|im_end|>
{% elif messages[0].role == 'system' -%}
<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif -%}
{%- for message in messages -%}
{%- if message.role == 'user' or message.role == 'tool' -%}
<|im_start|>user
{% if message.role == 'tool' %}<tool_response>
{% endif %}
{%- if message.content is string %}{{ message.content }}{% else -%}
{%- for part in message.content -%}
{%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>{%- else -%}{{ part.text }}{%- endif -%}
{%- endfor -%}
{%- endif -%}
{%- if message.role == 'tool' %}
</tool_response>{% endif -%}
<|im_end|>
{% elif message.role == 'assistant' -%}
{%- set said = message.content.split('</think>')[-1].lstrip('\\n') -%}
{%- set thought = '' -%}
{%- if '</think>' in message.content -%}
{%- set thought = message.content.split('</think>')[0].split('<think>')[-1].strip('\\n') -%}
{%- endif -%}
<|im_start|>assistant
{% if loop.last %}<think>
{{ thought }}
</think>

{% endif %}{{ said }}
{%- for call in message.tool_calls or [] -%}
{% if not loop.first or said %}
{% endif %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor -%}
<|im_end|>
{% endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
<think>
{% endif -%}
"""
"""As published models that think have it: an answer begins within its thought, and earlier answers lose theirs."""
CLICK = {"type": "function", "function": {"name": "click", "parameters": {"type": "object"}}}


def thinking_model(folder: Path) -> Path:
    """A tiny model with that template."""
    build_tiny_model(folder, sentence_tokenizer(["Task: click the button\n", "<think>\n", "\n</think>\n\n"]), seed=1)
    (folder / "chat_template.jinja").write_text(THINKING_TEMPLATE)
    return folder


def png(seed: int, width: int = 160, height: int = 210) -> bytes:
    return _encoded(Image.new("RGB", (width, height), (seed * 37 % 256, seed * 91 % 256, 200)))


def data_url(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def image_part(seed: int) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(png(seed))}}


def call(number: int, **arguments: object) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": "click", "arguments": arguments}}


def episode(num_turns: int = 3, *, task: str = "t1", rollout: int = 0, first: int = 0) -> dict[str, Any]:
    """An episode of OpenAI's form: each turn a thought and a click, each click answered with the next screenshot."""
    asked = [{"type": "text", "text": f"Task: {task}\nscreenshot:\n"}, image_part(first)]
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You browse."}, {"role": "user", "content": asked}]
    for turn in range(num_turns):
        said = {"role": "assistant", "content": f"<think>\nThought {turn}\n</think>", "tool_calls": [call(turn, x=turn)]}
        messages.append(said)
        if turn < num_turns - 1:
            seen = [{"type": "text", "text": "done\n"}, image_part(first + turn + 1)]
            messages.append({"role": "tool", "tool_call_id": f"c{turn}", "name": "click", "content": seen})
    metadata = {"task_id": task, "rollout_idx": rollout, "n_turns": num_turns, "intent": "Click.", "reward": 1.0}
    return {"tools": [CLICK], "messages": messages, "metadata": metadata}


_SHOWN = "<|vision_start|><|image_pad|><|vision_end|>"


def light_page(seed: int) -> bytes:
    """White, with a few dark lines."""
    draw, page = random.Random(seed), Image.new("RGB", (160, 210), "white")
    for _ in range(6):
        left, top, width = draw.randrange(100), draw.randrange(200), draw.randrange(20, 60)
        ImageDraw.Draw(page).rectangle((left, top, left + width, top + 8), fill="black")
    return _encoded(page)


def _encoded(image: Image.Image) -> bytes:
    encoded = io.BytesIO()
    image.save(encoded, "PNG")
    return encoded.getvalue()


def raw_rows(num_turns: int = 3, *, task: str = "t1", rollout: int = 0) -> list[dict[str, Any]]:
    """The same episode as OpenWebRL's raw release has it: a row a turn, in the words of its own model."""
    prompt = f"# Tools\n<tools>\n{json.dumps(CLICK)}\n</tools>\n"
    messages = [
        {"role": "system", "content": "You browse."},
        {"role": "user", "content": f"Task: {task}\nscreenshot:\n{_SHOWN}"},
    ]
    rows = []
    for turn in range(num_turns):
        called = json.dumps({"name": "click", "arguments": {"x": turn}})
        response = f"<think>\nThought {turn}\n</think>\n\n<tool_call>\n{called}\n</tool_call>"
        messages = [*messages, {"role": "assistant", "content": response}]
        metadata = {
            "task_id": task,
            "turn_index": turn,
            "images": [data_url(png(turn))],
            "messages": messages,
            "intent": "Click.",
        }
        rows.append({"prompt": prompt, "response": response, "rollout_idx": rollout, "metadata": metadata})
        messages = [*messages, {"role": "tool", "name": "click", "content": f"done\n{_SHOWN}"}]
    return rows


def raw_row(response: str, *, task: str, intent: str, system: str, screenshot: bytes) -> dict[str, Any]:
    """An episode of that release with one answer."""
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": f"Task: {intent}{_SHOWN}"},
        {"role": "assistant", "content": response},
    ]
    about = {"task_id": task, "turn_index": 0, "images": [data_url(screenshot)], "messages": messages, "intent": intent}
    return {"prompt": "", "response": response, "rollout_idx": 0, "metadata": about}


def write_lines(file: Path, records: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file
