"""A launch script of another program is read as a shell would, and never run: nothing of its settings is lost in silence."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.config.elsewhere.answer import Answer, Answers
from ops.config.elsewhere.answering import answers
from ops.config.elsewhere.programs import PROGRAMS
from ops.config.elsewhere.reading import Read, read_file
from ops.config.elsewhere.row import Kind
from ops.config.elsewhere.script_file import script_values


def answer_of(found: Answers, key: str) -> Answer:
    return next(answer for answer in found.all if answer.key == key)


@pytest.mark.parametrize(
    ("script", "key", "value"),
    [
        ("python x a.b=1 \\\n  a.c='two words' # a.d=3\n", "a.c", "two words"),
        ('x="5"; x=6\npython x a.b=${x}', "a.b", 6),
        ("python x a.b=${never:-7}", "a.b", 7),
        ("n=3; python x a.b=$((n * 4 - 2))", "a.b", 10),
        ('all="a.b=1 a.c=2"; python x $all', "a.c", 2),
        ('all="\n a.b=$(date +%s) \\\n a.c=2"; python x a.d=1 $all', "a.c", 2),
        ('python x "a.b=\\"quoted text\\""', "a.b", "quoted text"),
        ("cat <<END\na.b=1\nEND\npython x a.b=2", "a.b", 2),
        ("python x a.b=1 > log.txt 2>&1 | tee log", "a.b", 1),
        ('tmux send-keys -t s "python x \\\\\n  a.b=8" C-m', "a.b", 8),
        ("python x a.b=[1,2]", "a.b", [1, 2]),
        ("python x a.b=null", "a.b", None),
        ("python x a.b=1e-6", "a.b", 1e-6),
        ("CUDA_VISIBLE_DEVICES=0 python x +a.b=1", "a.b", 1),
        ("python x ++a.b=1 a.b=2", "a.b", 2),
        ("n=3; python x a.b=$((2*(n+1)))", "a.b", 8),
        ("n=4; unset n; python x a.b=${n:-5}", "a.b", 5),
        ("n=; python x a.b=${n:-5}", "a.b", 5),
        ("n=; python x a.b=${n-5}", "a.b", ""),
        ("n=1; python x a.c=1 ${n:+a.b=3}", "a.b", 3),
        ("if a; then python x a.b=1; fi", "a.b", 1),
        ("python x a.b=1 <<END\na.b=2\nEND\n", "a.b", 1),
        ("model=org/name-7B; python x a.b=run_$(basename $model)", "a.b", "run_name-7B"),
        ("function f() {\n python x a.b=3\n}\nf", "a.b", 3),
    ],
)
def test_a_script_is_read_as_a_shell_would(script: str, key: str, value: object, tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(script)
    assert read_file(file).values[key] == value


def test_nothing_of_a_script_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    file = tmp_path / "run.sh"
    file.write_text(f"x=$(touch {mark}); y=`touch {mark}`\npython x a.b=$x a.c=$(touch {mark}) a.d=$y\ntouch {mark}\n")
    read = read_file(file)
    assert not mark.exists()
    assert f"$(touch {mark})" in str(read.values["a.b"])


@pytest.mark.parametrize(
    "setting",
    [
        'if [ "$1" = big ]; then\n  n=8\nfi',
        'if [ "$1" = big ]; then n=8; fi',
        "n=4; if a; then export n=8; fi",
        "n=4\nif a\nthen n=5\nelse n=8\nfi",
        "case $1 in\n  small) n=4;;\n  big) n=8;;\nesac",
        '[ -n "$BIG" ] && n=8',
        '[ -z "$BIG" ] || {\n  n=8\n}',
        "for i in 1 2; do n=8; done",
        "n=4\n(n=8)",
        "n=4; echo | n=8",
        "set_n() {\n  n=8\n}\nset_n",
    ],
)
def test_a_value_that_only_a_branch_sets_is_taken_and_said(setting: str) -> None:
    script = script_values(f"{setting}\npython x data.train_batch_size=$n\n")
    assert (script.values, script.conditional) == ({"data.train_batch_size": 8}, {"data.train_batch_size"})
    found = answers(PROGRAMS["verl"], Read(script.values, conditional=frozenset(script.conditional)))
    words = answer_of(found, "data.train_batch_size").words
    assert words == "8 prompts of 1 episode each; a branch of the script sets it so"


@pytest.mark.parametrize(
    ("script", "conditional"),
    [
        ("A=(a.b=1)\nif a; then A+=(a.c=2); fi\npython x ${A[@]}", {"a.c"}),
        ('A="a.b=1"\nif a; then A="$A a.c=2 a.d=3"; fi\npython x $A', {"a.c", "a.d"}),
        ("if a; then n=4; fi\nn=8\npython x a.b=$n a.c=2", set()),
        ("if a; then python x a.b=1 a.c=2; fi", set()),
        ("a && (b)\nn=4\npython x a.b=$n a.c=2", set()),
        ("{ n=4; }\npython x a.b=$n a.c=2", set()),
    ],
)
def test_what_no_branch_sets_is_certain(script: str, conditional: set[str]) -> None:
    found = script_values(script)
    assert found.conditional == conditional
    assert {"a.b", "a.c"} <= found.values.keys()


@pytest.mark.parametrize(
    ("script", "values", "others"),
    [
        ("if a; then python x a.b=512 a.v=1; else python y a.b=64; fi", {"a.b": 512, "a.v": 1}, ["python y a.b=64"]),
        ("python prepare z.root=1\npython x a.b=1\npython y a.b=2", {"a.b": 1}, ["python prepare z.root=1", "python y a.b=2"]),
        ("new() {\n python x a.b=1 a.c=2\n}\nold() {\n python x a.b=3\n}\nold", {"a.b": 3}, []),
    ],
)
def test_of_several_commands_the_one_with_most_known_keys_is_read_and_others_are_named(
    script: str, values: dict[str, object], others: list[str]
) -> None:
    found = script_values(script, lambda key: key.startswith("a."))
    assert (found.values, list(found.unread)) == (values, others)


@pytest.mark.parametrize(
    ("script", "unread"),
    [
        ('python x a.b=1 ${GROUP}.rollout.n=8 "$@"', ["$GROUP.rollout.n=8", "$@"]),
        ("python x a.b=1 a.{b,c}=1", ["a.{b,c}=1"]),
        ("python x a.b=1 ${n:+a.c=3}", ["${n:+a.c=3}"]),
        ('readarray -t A < settings\npython x a.b=1 "${A[@]}" $MORE', ["$A", "$MORE"]),
    ],
)
def test_what_may_be_a_setting_and_is_not_understood_is_answered(script: str, unread: list[str]) -> None:
    found = script_values(script)
    assert (found.values, list(found.unread)) == ({"a.b": 1}, unread)
    told = answers(PROGRAMS["verl"], Read({"trainer.nnodes": 1}, unread=found.unread))
    assert [(answer.value, answer.kind) for answer in told.written if not answer.key] == [
        (text, Kind.INSTEAD) for text in unread
    ]


@pytest.mark.parametrize(
    "line",
    [
        "pip install torch==2.0.1 flash.attn=2",
        "python -m pip install a.lr==2",
        "sed -i 's/a.lr=1/a.lr=2/' f",
        "echo a.lr=4",
        "export a.lr=4",
        "[ x.lr=y ] && echo",
        "cat <<A <<B\na.lr=1\nA\na.lr=2\nB",
        "[[ $x =~ ^a.lr=.*$ ]] && true",
    ],
)
def test_words_of_other_commands_are_no_settings(line: str) -> None:
    found = script_values(f"{line}\nenv N=1 python x a.b=1 torch==2 2>&1 | tee logs/run.lr=3.log\n")
    assert (found.values, found.unread) == ({"a.b": 1}, {})


def test_no_text_takes_a_script_long_to_read() -> None:
    for text in ("data" + "/x" * 2_000 + ":1", "Loading" + "." * 20_000 + "!", "cat <<END" + "\n" * 100_000):
        assert script_values(f"python x a.b=1\npython y a.c=1 {text}\n").values == {"a.b": 1}


@given(st.text(alphabet=st.sampled_from("ab.=$ {}()'\"\\\n#~+[]`<>|&;-1*/"), max_size=200))
def test_any_script_is_read(text: str) -> None:
    script = script_values(f"x=1\n{text}\npython x a.b=1")
    assert isinstance(script.values, dict)
