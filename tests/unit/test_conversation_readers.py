"""Other people's conversations, read: what each form becomes, and that nothing bad goes on or is lost without a word."""

import base64
import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ops.archive.screenshots import screenshot_name
from ops.commands.conversation_arguments import FORMATS
from ops.sft.conversation import About, Conversation
from ops.sft.findings import BadRecord, Findings
from ops.sft.formats import ReadingOptions, reader_of
from ops.sft.formats.openwebrl import is_row
from ops.sft.images import screenshot_of
from ops.web.answers import screenshot_answer
from schemas.errors import ConfigurationError
from schemas.messages import Screenshot
from tests.support.sft.conversations import CLICK, call, data_url, episode, image_part, png, raw_rows, write_lines


def read(path: Path, form: str = "openai", **options: str) -> tuple[list[Conversation], Findings]:
    findings = Findings()
    found = reader_of(form)(path, findings, ReadingOptions(**options))
    return [each.conversation for each in found], findings


def said(conversation: Conversation) -> list[tuple[str, str, int, int]]:
    """Role, text, screenshots and calls of each message."""
    return [(message.role, message.text, len(message.screenshots), len(message.calls)) for message in conversation.messages]


def problems(findings: Findings) -> list[str]:
    return [f"{problem.record}: {problem.what}" for problem in findings.problems]


EPISODE = [
    ("system", "You browse.", 0, 0),
    ("user", "Task: t1\nscreenshot:\n", 1, 0),
    ("assistant", "<think>\nThought 0\n</think>", 0, 1),
    ("tool", "done\n", 1, 0),
    ("assistant", "<think>\nThought 1\n</think>", 0, 1),
    ("tool", "done\n", 1, 0),
    ("assistant", "<think>\nThought 2\n</think>", 0, 1),
]


def test_an_episode_of_openais_form(tmp_path: Path) -> None:
    found, findings = read(write_lines(tmp_path / "a.jsonl", [episode()]))
    assert [said(one) for one in found] == [EPISODE]
    assert found[0].tools == (CLICK,)
    assert found[0].about == About(task="t1", instruction="Click.")
    assert found[0].messages[1].screenshots[0] == Screenshot(data=png(0), media_type="image/png", width=160, height=210)
    assert found[0].messages[3].named == {"name": "click", "tool_call_id": "c0"}
    assert found[0].messages[2].calls[0]["function"] == {"name": "click", "arguments": {"x": 0}}
    assert findings.told() == ["not read or not used, and how often it was met: metadata.reward (1)"]


@pytest.mark.parametrize("value", [True, 2**70, -(2**70), 1.5, "2", [3]])
def test_a_difficulty_that_no_message_holds_is_left_out_and_said(value: object, tmp_path: Path) -> None:
    one = episode()
    one["metadata"] = {"task_id": "t1", "difficulty": value}
    found, findings = read(write_lines(tmp_path / "a.jsonl", [one]))
    assert [each.about.difficulty for each in found] == [1]
    assert "metadata.difficulty that is no whole number (1)" in findings.told()[-1]


def test_the_raw_rows_of_an_episode_are_the_same_in_any_order(tmp_path: Path) -> None:
    first, second = raw_rows(), raw_rows(2, rollout=1)
    found, findings = read(write_lines(tmp_path / "raw.jsonl", [first[2], second[0], first[0], second[1], first[1]]))
    assert [said(one) for one in found] == [EPISODE, EPISODE[:5]]
    assert found[0].tools == (CLICK,)
    assert found[0].about == About(task="t1", instruction="Click.")
    shown = [screenshot.data for message in found[0].messages for screenshot in message.screenshots]
    assert shown == [png(0), png(1), png(2)]
    assert findings.told() == []


def test_a_last_answer_that_stands_beside_the_messages_is_one_of_them(tmp_path: Path) -> None:
    rows = raw_rows()
    del rows[2]["metadata"]["messages"][-1]
    (found,), _ = read(write_lines(tmp_path / "raw.jsonl", rows))
    assert said(found) == EPISODE


def test_a_call_that_is_no_json_stays_in_the_text(tmp_path: Path) -> None:
    rows = raw_rows(1)
    rows[0]["metadata"]["messages"][-1]["content"] = "<tool_call>{oh</tool_call> and <tool_call>"
    (found,), _ = read(write_lines(tmp_path / "raw.jsonl", rows))
    assert said(found)[-1] == ("assistant", "<tool_call>{oh</tool_call> and <tool_call>", 0, 0)


def test_every_bad_record_is_told_with_all_others(tmp_path: Path) -> None:
    def with_message(message: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [message]}

    records = [
        episode(),
        with_message({"role": "wizard", "content": "x"}),
        with_message({"role": "user", "content": [{"type": "video"}]}),
        with_message({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/a.png"}}]}),
        with_message({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,!!"}}]}),
        with_message({"role": "user", "content": [{"type": "image_url", "image_url": {"url": data_url(b"no image")}}]}),
        with_message({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "absent.png"}}]}),
        with_message({"role": "assistant", "tool_calls": [{"function": {"name": "click", "arguments": "{"}}]}),
        {"messages": 7},
        with_message({"role": "user", "content": 7}),
        episode(),
    ]
    file = write_lines(tmp_path / "a.jsonl", records)
    file.write_text(file.read_text() + "not JSON\n[1]\n")
    found, findings = read(file)
    assert len(found) == 2
    assert [problem.record for problem in findings.problems] == [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13]
    expected = (
        "message 1 has the role 'wizard'",
        "message 1, part 1 is of type 'video'",
        "is on the web: download the images",
        "is a data URL that is not base64",
        "cannot be opened as an image",
        "names 'absent.png', and there is no such file",
        "message 1, call 1.arguments is not JSON",
        "messages is 7: a list is expected",
        "message 1.content is 7: a list is expected",
        "it is not JSON",
        "the record is a list: an object is expected",
    )
    for problem, part in zip(findings.problems, expected, strict=True):
        assert part in problem.what
        assert str(problem).startswith(f"{file}, record {problem.record}: ")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda rows: rows[1]["metadata"].update(images=[]), "record 2, a turn of this episode, has 0 images"),
        (lambda rows: rows.pop(1), "more placeholders for images than its 2 images"),
        (lambda rows: rows[2]["metadata"]["messages"].pop(3), "3 images and placeholders for 2"),
        (lambda rows: rows.append(dict(rows[0])), 'turn 0 of task "t1", rollout 0 is record 1 too'),
        (lambda rows: rows[2].update(prompt="<tools>\noh\n</tools>"), "a tool in prompt is not JSON"),
    ],
)
def test_raw_rows_that_make_no_episode_are_named(tmp_path: Path, change: Any, what: str) -> None:
    rows = raw_rows()
    change(rows)
    _, findings = read(write_lines(tmp_path / "raw.jsonl", rows))
    assert len(findings.problems) == 1
    assert what in findings.problems[0].what


def test_an_answer_of_weight_0_is_context(tmp_path: Path) -> None:
    record = episode(2)
    record["messages"][2]["weight"] = 0
    (found,), _ = read(write_lines(tmp_path / "a.jsonl", [record]))
    assert [message.trained for message in found.messages if message.role == "assistant"] == [False, True]


def test_reasoning_beside_the_content_is_a_thought(tmp_path: Path) -> None:
    answer = {"role": "assistant", "reasoning_content": "Why?", "content": "So."}
    (found,), _ = read(write_lines(tmp_path / "a.jsonl", [{"messages": [answer]}]))
    assert found.messages[0].text == "<think>\nWhy?\n</think>\n\nSo."


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_every_name_of_a_thought_is_read(tmp_path: Path, name: str) -> None:
    (found,), findings = read(write_lines(tmp_path / "a.jsonl", [{"messages": [{"role": "assistant", name: "Why?"}]}]))
    assert found.messages[0].text == "<think>\nWhy?\n</think>\n\n"
    assert findings.told() == []


def test_older_calls_are_calls(tmp_path: Path) -> None:
    messages = [
        {"role": "assistant", "content": "So.", "function_call": {"name": "click", "arguments": '{"x": 1}'}},
        {"role": "function", "name": "click", "content": "done"},
    ]
    (found,), findings = read(write_lines(tmp_path / "a.jsonl", [{"messages": messages}]))
    assert said(found) == [("assistant", "So.", 0, 1), ("tool", "done", 0, 0)]
    assert found.messages[0].calls[0]["function"] == {"name": "click", "arguments": {"x": 1}}
    assert findings.told() == []


def test_placeholders_in_parts_of_text_stand_for_images(tmp_path: Path) -> None:
    put_images(tmp_path)
    asked = {"role": "user", "content": [{"type": "text", "text": "Look: <image> there."}]}
    (found,), _ = read(write_lines(tmp_path / "a.jsonl", [{"messages": [asked], "images": "images/0.png"}]))
    assert [part if isinstance(part, str) else part.data for part in found.messages[0].parts] == ["Look: ", png(0), " there."]


def test_a_record_alone_in_its_file_and_no_description_of_a_data_set(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(episode(1), indent=2))
    (tmp_path / "b.json").write_text(json.dumps(episode(2)))
    write_lines(tmp_path / "c.json", [episode(), episode()])
    (tmp_path / "dataset_info.json").write_text(json.dumps({"a": {"file_name": "a.json"}}, indent=2))
    found, findings = read(tmp_path)
    assert [len(one.messages) for one in found] == [3, 5, 7, 7]
    assert problems(findings) == []
    (tmp_path / "a.json").write_text("{\n" + json.dumps(episode(1)) + "\n")
    found, findings = read(tmp_path / "a.json")
    assert (len(found), [problem.record for problem in findings.problems]) == (1, [1])


@pytest.mark.parametrize("kind", ["AVIF", "DDS", "TIFF"])
def test_images_of_other_formats_are_named(tmp_path: Path, kind: str) -> None:
    encoded = io.BytesIO()
    Image.new("RGB", (8, 8)).save(encoded, kind)
    part = {"type": "image_url", "image_url": {"url": data_url(encoded.getvalue())}}
    _, findings = read(write_lines(tmp_path / "a.jsonl", [{"messages": [{"role": "user", "content": [part]}]}]))
    assert "cannot be opened as an image (PNG, JPEG, WEBP, GIF, BMP)" in findings.problems[0].what


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_images_of_its_formats_are_shown_and_archived_as_what_they_are(kind: str) -> None:
    encoded = io.BytesIO()
    Image.new("RGB", (8, 8)).save(encoded, kind)
    screenshot = screenshot_of(encoded.getvalue(), "it")
    answer = screenshot_answer(screenshot)
    assert (answer.status_code, answer.headers["content-type"]) == (200, f"image/{kind.lower()}")
    assert screenshot_name(screenshot).endswith(f".{kind.lower().replace('jpeg', 'jpg')}")


def test_an_error_of_a_decoder_is_a_bad_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise NotImplementedError("a decoder of tomorrow")

    monkeypatch.setattr(Image, "open", fails)
    with pytest.raises(BadRecord, match="a decoder of tomorrow"):
        screenshot_of(png(0), "it")


# ShareGPT and LLaMA-Factory -------------------------------------------------------------------------------------------


SHAREGPT = {
    "conversations": [
        {"from": "human", "value": "Look: <image> there."},
        {"from": "function_call", "value": '<think>\nT\n</think>{"name": "click", "arguments": {"x": 1}}'},
        {"from": "observation", "value": "<image>done"},
        {"from": "gpt", "value": "It is done."},
    ],
    "system": "You browse.",
    "tools": json.dumps([{"name": "click", "parameters": {"type": "object"}}]),
    "images": ["images/0.png", "images/1.png"],
}
READ = [
    ("system", "You browse.", 0, 0),
    ("user", "Look:  there.", 1, 0),
    ("assistant", "<think>\nT\n</think>", 0, 1),
    ("tool", "done", 1, 0),
    ("assistant", "It is done.", 0, 0),
]


def put_images(folder: Path) -> None:
    (folder / "images").mkdir(parents=True)
    for number in range(2):
        (folder / "images" / f"{number}.png").write_bytes(png(number))


def test_sharegpt_with_its_images_beside(tmp_path: Path) -> None:
    put_images(tmp_path)
    (tmp_path / "data.json").write_text(json.dumps([SHAREGPT]))
    (found,), findings = read(tmp_path, "sharegpt")
    assert said(found) == READ
    assert found.messages[1].parts[0] == "Look: "
    assert found.tools == (CLICK,)
    assert findings.told() == []
    alone = {"conversations": SHAREGPT["conversations"][:1], "images": "images/0.png"}
    ((look,), _) = read(write_lines(tmp_path / "alone.jsonl", [alone]), "sharegpt")
    assert said(look) == [("user", "Look:  there.", 1, 0)]


def test_llamafactory_by_its_own_columns_and_tags(tmp_path: Path) -> None:
    put_images(tmp_path)
    tags = {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant"}
    info = {
        "file_name": "data/web.jsonl",
        "formatting": "sharegpt",
        "columns": {"messages": "messages", "images": "shots", "tools": "functions"},
        "tags": tags,
    }
    (tmp_path / "dataset_info.json").write_text(json.dumps({"web": info, "other": {"formatting": "alpaca"}}))
    messages = [
        {"role": "system", "content": "You browse."},
        {"role": "user", "content": "Look: <image>"},
        {"role": "assistant", "content": "<think>T</think>\n\n<tool_call>...</tool_call>"},
    ]
    (tmp_path / "data").mkdir()
    record = {"messages": messages, "shots": ["images/0.png"], "functions": [CLICK], "rank": 3}
    write_lines(tmp_path / "data" / "web.jsonl", [record])
    (found,), findings = read(tmp_path, "llamafactory", dataset="web")
    assert said(found) == [
        ("system", "You browse.", 0, 0),
        ("user", "Look: ", 1, 0),
        ("assistant", "<think>T</think>\n\n<tool_call>...</tool_call>", 0, 0),
    ]
    assert found.tools == (CLICK,)
    assert findings.told() == ["not read or not used, and how often it was met: rank (1)"]
    with pytest.raises(ConfigurationError, match="other is of formatting 'alpaca'"):
        read(tmp_path, "llamafactory")
    with pytest.raises(ConfigurationError, match="has no data set 'wbe': write --dataset with one of web, other"):
        read(tmp_path, "llamafactory", dataset="wbe")


@pytest.mark.parametrize(
    ("images", "what"), [(0, "more placeholders for images than its 0"), (3, "3 images and placeholders")]
)
def test_images_and_placeholders_have_to_be_as_many(tmp_path: Path, images: int, what: str) -> None:
    put_images(tmp_path)
    record = {**SHAREGPT, "images": ["images/0.png"] * images}
    _, findings = read(write_lines(tmp_path / "a.jsonl", [record]), "sharegpt")
    assert what in findings.problems[0].what


# Hugging Face ---------------------------------------------------------------------------------------------------------


def test_parquet_with_images_inside(tmp_path: Path) -> None:
    user = {"role": "user", "content": [{"type": "image", "text": None}, {"type": "text", "text": "Look."}]}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}
    rows = [
        {"messages": [user, answer], "images": [{"bytes": png(number), "path": None}], "split": "x"} for number in range(2)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train-00000.parquet")
    found, findings = read(tmp_path, "huggingface")
    assert [said(one) for one in found] == [[("user", "Look.", 1, 0), ("assistant", "Yes.", 0, 0)]] * 2
    assert [one.messages[0].screenshots[0].data for one in found] == [png(0), png(1)]
    assert findings.told() == ["not read or not used, and how often it was met: split (2)"]


def test_parquet_of_sharegpts_form_with_images_beside(tmp_path: Path) -> None:
    put_images(tmp_path)
    pq.write_table(pa.Table.from_pylist([SHAREGPT]), tmp_path / "a.parquet")
    (found,), _ = read(tmp_path / "a.parquet", "huggingface")
    assert said(found) == READ


def test_arguments_that_arrow_filled_with_nulls_are_those_that_were_given(tmp_path: Path) -> None:
    answers = [
        {"role": "assistant", "content": None, "tool_calls": [call(0, x=1)]},
        {"role": "assistant", "content": None, "tool_calls": [call(1, text="hello")]},
    ]
    pq.write_table(pa.Table.from_pylist([{"messages": answers}]), tmp_path / "a.parquet")
    (found,), _ = read(tmp_path, "huggingface")
    given = [message.calls[0]["function"] for message in found.messages]
    assert given == [{"name": "click", "arguments": {"x": 1}}, {"name": "click", "arguments": {"text": "hello"}}]


def test_a_row_without_messages_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([{"text": "x"}]), tmp_path / "a.parquet")
    _, findings = read(tmp_path, "huggingface")
    assert problems(findings) == ["1: it has neither messages nor conversations, but text"]


# anything at all ------------------------------------------------------------------------------------------------------

_WORDS = ["user", "assistant", "human", "gpt", "text", "image", "<image>", "a.png", "data:,", "", "{}", "[", "~"]
_NAMES = st.sampled_from(
    [
        *("messages", "conversations", "images", "tools", "metadata", "role", "content", "from", "value", "type", "text"),
        *("url", "image_url", "tool_calls", "function", "name", "arguments", "turn_index", "prompt", "system"),
    ]
)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(_WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)


_NOTHING = b"\xef\xbb\xbf \t\n\r\x0b\x0c[]"
"""What a file without records may consist of."""


@pytest.mark.parametrize("form", FORMATS)
@given(data=st.binary(max_size=80))
@settings(max_examples=50)
def test_any_bytes_are_read_or_named(tmp_path: Path, form: str, data: bytes) -> None:
    name = {"huggingface": "a.parquet", "llamafactory": "dataset_info.json"}.get(form, "a.jsonl")
    (tmp_path / name).write_bytes(data)
    with suppress(ConfigurationError):
        found, findings = read(tmp_path, form)
        assert found or findings.problems or set(data) <= set(_NOTHING)


@pytest.mark.parametrize("form", ["openai", "sharegpt"])
@given(records=st.lists(st.dictionaries(_NAMES, _values, max_size=5), max_size=3))
@settings(max_examples=100)
def test_any_record_is_read_or_named(tmp_path: Path, form: str, records: list[dict[str, Any]]) -> None:
    found, findings = read(write_lines(tmp_path / "a.jsonl", records), form)
    num_rows = sum(map(is_row, records))
    assert len(found) + len(findings.problems) >= len(records) - num_rows


def test_a_folder_without_data_is_named(tmp_path: Path) -> None:
    for form in FORMATS:
        with pytest.raises(ConfigurationError, match=r"holds no|cannot be read"):
            read(tmp_path, form)


def test_inline_images_are_bytes_for_bytes(tmp_path: Path) -> None:
    part = image_part(5)
    assert base64.b64decode(part["image_url"]["url"].partition(",")[2]) == png(5)
    (found,), _ = read(write_lines(tmp_path / "a.jsonl", [{"messages": [{"role": "user", "content": [part]}]}]))
    assert found.messages[0].screenshots[0].data == png(5)
