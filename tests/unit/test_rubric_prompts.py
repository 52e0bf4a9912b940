"""The prompt files of a version."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from judges.rubric import prompts
from judges.rubric.prompts import PLACEHOLDERS, Prompts, committed_prompts, load_prompts
from schemas.errors import ConfigurationError

_COMMITTED = Path(prompts.__file__).parent / "rubric_v1"
_DIGEST = "cb208dd7a57ebe3f0f7aa926c71ad220d962509dbe193537c2e221296fecf469"


def test_a_change_of_the_prompts_is_a_version_of_its_own() -> None:
    """Judgements name their rubric: put changed prompts into a folder `rubric_v2`, with a judge of that name."""
    assert committed_prompts("rubric_v1").digest == _DIGEST


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copied = tmp_path / "mine"
    shutil.copytree(_COMMITTED, copied)
    return copied


def test_a_folder_is_a_version(folder: Path) -> None:
    loaded, committed = load_prompts(folder), committed_prompts("rubric_v1")
    assert (loaded.version, loaded.digest, loaded.texts) == ("mine", committed.digest, committed.texts)
    (folder / "system.txt").write_text("Judge.\n")
    assert load_prompts(folder).digest != committed.digest


@pytest.mark.parametrize("name", sorted(PLACEHOLDERS))
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / f"{name}.txt").unlink()
    with pytest.raises(ConfigurationError, match=f"mine: {name}.txt is missing"):
        load_prompts(folder)


@pytest.mark.parametrize(("name", "placeholder"), sorted((name, each) for name, all in PLACEHOLDERS.items() for each in all))
def test_a_missing_placeholder_is_named(folder: Path, name: str, placeholder: str) -> None:
    path = folder / f"{name}.txt"
    path.write_text(path.read_text().replace(f"${placeholder}", "it"))
    with pytest.raises(ConfigurationError, match=rf"{name}.txt lacks the placeholder \${placeholder}"):
        load_prompts(folder)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("blocking", "Blocked? $answer", r"blocking.txt has \$answer, which nothing is put in for"),
        ("keypoint", "It costs 5 $", "keypoint.txt has a \\$ that begins no placeholder"),
        ("system", " \n", "system.txt is empty"),
        ("criterion_c", "Well?", "criterion_c.txt is read by nobody"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(folder: Path, name: str, text: str, reason: str) -> None:
    (folder / f"{name}.txt").write_text(text)
    with pytest.raises(ConfigurationError, match=reason):
        load_prompts(folder)


def test_bytes_that_are_no_text_are_named(folder: Path) -> None:
    (folder / "system.txt").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigurationError, match=r"system.txt is not UTF-8"):
        load_prompts(folder)


@pytest.mark.parametrize("spoil", [Path.mkdir, lambda path: path.symlink_to("/nowhere")], ids=["folder", "dead link"])
def test_what_is_no_file_is_named(folder: Path, spoil: Callable[[Path], None]) -> None:
    path = folder / "system.txt"
    path.unlink()
    spoil(path)
    with pytest.raises(ConfigurationError, match=r"mine: system.txt cannot be read \(.+\): put a text there"):
        load_prompts(folder)


def test_a_version_has_the_folders_name_however_it_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert [load_prompts(Path(written)).version for written in (".", "../mine", "../mine/.")] == ["mine"] * 3


def test_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such folder"):
        load_prompts(tmp_path / "none")
    with pytest.raises(ConfigurationError, match="no such folder"):
        committed_prompts("rubric_v0")


def test_what_is_put_in_is_never_read_for_placeholders() -> None:
    prompts = Prompts("v", "d", {"task": "$first, then $second; $$5"})
    assert prompts.fill("task", first="$second ${second} $$", second="$first") == "$second ${second} $$, then $first; $5"
