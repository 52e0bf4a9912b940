"""The page docs/configuration_names.md: what becomes of every key of every program, made of the tables."""

from collections.abc import Iterator

from ops.config.display import scalar
from ops.config.elsewhere.programs import PROGRAMS
from ops.config.elsewhere.row import ABSENT, Kind, Program, Row

_HEAD = """\
# Names elsewhere, names here

Made by `millrace config --markdown names` from the tables that `millrace config import` answers by
([configuration.md](configuration.md#another-programs-configuration)). Whoever writes one of these
names as an override, or in a file, is told what is here in its place. `a.*` stands for all below
`a` that has no row of its own.

## What is not here

| theirs | here |
|---|---|
| Megatron: tensor, pipeline and sequence parallel training | DeepSpeed's ZeRO; a sequence is computed by one rank |
| SGLang, TensorRT-LLM, transformers as what answers | vLLM, or any OpenAI-compatible endpoint |
| robots and their simulators | pages in Chromium, and the suites of `millrace tasks` |
| Ray, and placement of components on GPUs | workers that join the run's NATS server, wherever they are started |

Their keys stand in the tables all the same, each with its reason."""
_OF = {
    "webgym": """\
Its files load unchanged, too: `millrace config --config rollout_test.yaml`. What has no effect loads with
WebGym's own value; any other is refused with what stands behind it. Values that stand for nothing, as
`<save_path_here>` or `model.pt` for a checkpoint that is to come, are as if they were left out.""",
    "verl": "Of its PPO trainer, and of recipes that have its keys.",
    "agentfly": "Its own keys; verl's stand above.",
    "vagen": "Its own keys, and those of verl's with other defaults; the others stand under verl.",
    "rlinf": "Keys of a simulator's own file stand without the group that it is composed into.",
}
_WORDS = {Kind.SAME: "always so", Kind.NOTHING: "no effect", Kind.INSTEAD: "instead"}


def names_page() -> str:
    return "\n".join([_HEAD, *(line for program in PROGRAMS.values() for line in _sections(program))]) + "\n"


def _sections(program: Program) -> Iterator[str]:
    yield from ("", f"## {program.name}", "", _OF[program.option], "")
    yield from _table(program)
    for setting in program.settings:
        yield f"| (no key) | `{setting.ours}` | {scalar(setting.value)}: {_cell(setting.why)} |"
    if program.older:
        yield from ("", f"Where a key below `{program.older_group}` is written, as in 2025, these count instead:", "")
        yield from _table(program.older)


def _table(program: Program) -> Iterator[str]:
    yield from (f"| {program.name} | here | |", "|---|---|---|")
    for row in program.own_rows:
        here = ", ".join(f"`{key}`" for key in row.ours) or _WORDS[row.kind]
        here = f"`{row.setting}` in the DeepSpeed file" if row.setting else here
        yield f"| `{row.theirs}` | {here} | {_cell(_words(row))} |"


def _words(row: Row) -> str:
    said = row.words
    if row.kind is Kind.SAME and row.usual:
        values = " or ".join(f"`{scalar(value)}`" for value in row.usual)
        said = f"{values}: {said}; else {row.otherwise}"
    if row.default is not ABSENT:
        said = "; ".join(filter(None, (said, f"`{scalar(row.default)}` where nobody writes it")))
    return said


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
