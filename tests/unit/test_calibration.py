"""What counts in a calibration, how labels are read, and what a person is shown."""

import io
import json
from pathlib import Path

import msgspec
import pytest
from PIL import Image
from rich.console import Console

from judges.spending import Spending, spending_rows, spent
from ops.analysis.calibration.comparison import Comparison, Truth, compare, deciding
from ops.analysis.calibration.display import show
from ops.analysis.calibration.drawing import draw
from ops.analysis.calibration.report import Calibration
from ops.analysis.calibration.statistics import Confusion
from ops.labels.label_file import read_labels
from ops.statistics.shares import Share
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId
from schemas.messages import Judgement, StageUsage, StageVerdict, Verdict
from tests.builders import judgement, task, trajectory


def judged(name: str, verdict: Verdict, *stages: StageVerdict, difficulty: int = 1, error: str = "") -> Judgement:
    of = trajectory(msgspec.structs.replace(task(name), difficulty=difficulty, instruction=f"do {name}"))
    of = msgspec.structs.replace(of, answer=f"answer {name}")
    reward = {Verdict.SUCCESS: 1.0, Verdict.FAILURE: 0.0}.get(verdict)
    return msgspec.structs.replace(judgement(of, reward), verdict=verdict, stages=stages, error=error, judged_s=2.0)


def compared(*rows: tuple[str, bool | None, Judgement | None]) -> Comparison:
    truths = {EpisodeId(f"train-r0000-{name}-m0"): Truth.labelled(label) for name, label, _ in rows}
    return compare(truths, {given.episode: given for _, _, given in rows if given is not None})


def test_only_a_verdict_of_success_is_a_success_and_an_error_is_no_verdict() -> None:
    found = compared(
        ("a", True, judged("a", Verdict.SUCCESS)),
        ("b", True, judged("b", Verdict.FAILURE)),
        ("c", False, judged("c", Verdict.SUCCESS)),
        ("d", False, judged("d", Verdict.FAILURE)),
        ("e", False, judged("e", Verdict.EXCLUDED)),
        ("f", True, judged("f", Verdict.EXCLUDED)),
        ("g", True, judged("g", Verdict.ERROR)),
        ("h", False, judged("h", Verdict.ERROR)),
        ("i", None, judged("i", Verdict.SUCCESS)),
        ("j", True, None),
    )
    assert found.confusion == Confusion(true_positives=1, false_positives=1, false_negatives=2, true_negatives=2)
    assert found.truths == {"success": 5, "failure": 4, "unlabelled": 1}
    assert found.verdicts == {"success": 3, "failure": 2, "excluded": 2, "error": 2, "unjudged": 1}
    assert found.matrix["success"] == {"success": 1, "failure": 1, "excluded": 1, "error": 1, "unjudged": 1}
    assert [one.episode.split("-")[2] for one in found.disagreements] == ["b", "c", "f"]


def test_another_rubric_is_a_truth_where_it_has_a_verdict() -> None:
    others = {
        "a": judged("a", Verdict.SUCCESS), "b": judged("b", Verdict.EXCLUDED), "c": judged("c", Verdict.ERROR), "d": None,
    }  # fmt: skip
    truths = {EpisodeId(f"train-r0000-{name}-m0"): Truth.judged(other) for name, other in others.items()}
    ruled = {given.episode: given for given in (judged(name, Verdict.FAILURE) for name in others)}
    found = compare(truths, ruled)
    assert found.confusion == Confusion(false_negatives=1, true_negatives=1)
    assert found.truths == {"success": 1, "excluded": 1, "error": 1, "unjudged": 1}


def test_agreement_by_difficulty() -> None:
    found = compared(
        ("a", True, judged("a", Verdict.SUCCESS, difficulty=3)),
        ("b", True, judged("b", Verdict.FAILURE, difficulty=1)),
        ("c", False, judged("c", Verdict.FAILURE, difficulty=3)),
        ("d", False, judged("d", Verdict.SUCCESS, difficulty=3)),
        ("e", False, judged("e", Verdict.ERROR, difficulty=2)),
    )
    assert found.by_difficulty == {1: Share(0, 1), 3: Share(2, 3)}


def test_votes_agree_as_far_as_they_were_asked() -> None:
    unanimous = StageVerdict("criterion_b", True, votes=(True, True, True))
    split = StageVerdict("criterion_a", False, votes=(False, True, False))
    alone = StageVerdict("reference", True)
    assert compared(("a", True, judged("a", Verdict.FAILURE, unanimous, split, alone))).vote_agreement == pytest.approx(5 / 6)
    assert compared(("a", True, judged("a", Verdict.FAILURE, alone))).vote_agreement is None


@pytest.mark.parametrize(
    ("verdict", "passed", "decided"),
    [
        (Verdict.SUCCESS, (True, True), 1),
        (Verdict.FAILURE, (True, False), 1),
        (Verdict.FAILURE, (False, True), 0),
        (Verdict.FAILURE, (False, False), 1),
        (Verdict.FAILURE, (True, True), None),
        (Verdict.SUCCESS, (), None),
    ],
)
def test_the_deciding_stage(verdict: Verdict, passed: tuple[bool, ...], decided: int | None) -> None:
    stages = tuple(StageVerdict(f"s{index}", value) for index, value in enumerate(passed))
    assert deciding(judged("a", verdict, *stages)) == (None if decided is None else stages[decided])


def test_spending_adds_up() -> None:
    usage = StageUsage(
        stage="criterion_b", model="m", num_calls=2, num_failures=1, prompt_tokens=100, cached_tokens=25, completion_tokens=9,
        cost=0.5,
    )  # fmt: skip
    given = msgspec.structs.replace(judged("a", Verdict.SUCCESS), usage=(usage, usage))
    total = spent((given, judged("b", Verdict.FAILURE)))
    assert total == Spending(
        num_judgements=2, num_calls=4, num_failures=2, prompt_tokens=200, cached_tokens=50, completion_tokens=18, cost=1.0,
        judged_s=4.0,
    )  # fmt: skip
    assert (total.cached_share, total.cost_each, total.seconds_each) == (0.25, 0.5, 2.0)
    assert [name for name, _ in spending_rows(total)] == ["model calls", "tokens", "cost", "seconds of judging"]
    assert dict(spending_rows(total))["tokens"] == "200 in (25% cached), 18 out"
    assert [name for name, _ in spending_rows(spent((judged("b", Verdict.FAILURE),)))] == ["seconds of judging"]
    assert (Spending().cached_share, Spending().cost_each, Spending().seconds_each) == (None, None, None)


def test_labels_are_read_with_whatever_stands_beside_them(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(
        '{"episode": "a", "success": true, "note": "seen", "instruction": "x"}\n\n{"episode": "b", "success": null}\n'
    )
    labels = read_labels(path)
    assert [(label.episode, label.success, label.note) for label in labels.values()] == [("a", True, "seen"), ("b", None, "")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"episode": "a", "success": "yes"}', ":1: Expected `bool | null`, got `str` - at `$.success`: write a line such as"),
        ('{"episode": "a", "success": true}\n{"episode": "b"}', ":2: Object missing required field `success`"),
        ('{"episode": "a"', ":1: Input data was truncated: write a line such as"),
        ('{"episode": "a", "success": 1}', ":1: Expected `bool | null`"),
        ('{"episode": "a", "success": true}\n\n{"episode": "a", "success": true}', ":3: a is labelled in line 1 already"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        read_labels(path)
    assert str(raised.value).startswith(f"{path}{told}")


def test_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_labels(tmp_path / "none.jsonl")


def calibration(comparison: Comparison) -> Calibration:
    return Calibration(
        source="runs/mine", rubric="rubric_v1", truth="labels.jsonl", comparison=comparison, other_spending=None,
        unknown=(EpisodeId("zzz"),),
    )  # fmt: skip


def some() -> Comparison:
    why = StageVerdict("criterion_a", False, "no price is [seen]")
    return compared(
        ("a", True, judged("a", Verdict.SUCCESS)),
        ("b", True, judged("b", Verdict.FAILURE, StageVerdict("criterion_b", True), why, difficulty=2)),
        ("c", True, judged("c", Verdict.EXCLUDED, error="blocked: a captcha")),
        ("d", None, None),
    )


def test_what_is_shown() -> None:
    output = io.StringIO()
    show(calibration(some()), Console(file=output, width=110))
    text = output.getvalue()
    assert "compared                 3 of 4 episodes" in text
    assert "recall                   0.333  0.061 to 0.792  (1 of 3)" in text
    assert "reason  criterion_a: no price is [seen]" in text
    assert "reason  blocked: a captcha" in text
    assert "train-r0000-b-m0: failure, should be success" in text
    assert "answer  answer b" in text
    assert "1 labels of episodes that are not there: zzz" in text


def test_of_many_disagreements_some_are_told() -> None:
    output = io.StringIO()
    many = [(f"t{number}", True, judged(f"t{number}", Verdict.FAILURE)) for number in range(45)]
    show(calibration(compared(*many)), Console(file=output, width=110))
    assert output.getvalue().count("should be success") == 40
    assert "and 5 more disagreements" in output.getvalue()


def test_the_figures_are_json() -> None:
    given = json.loads(msgspec.json.encode(calibration(some()).as_json()))
    assert (given["num_episodes"], given["num_compared"], given["num_unlabelled"], given["num_unjudged"]) == (4, 3, 1, 1)
    assert given["recall"] == {
        "count": 1,
        "number": 3,
        "value": 1 / 3,
        "interval": [pytest.approx(0.0615, abs=1e-4), pytest.approx(0.7923, abs=1e-4)],
    }
    assert [one["verdict"] for one in given["disagreements"]] == ["failure", "excluded"]
    assert given["unknown"] == ["zzz"]


@pytest.mark.parametrize(("comparison", "wrong"), [(some(), True), (compared(), False)])
def test_the_picture_shows_what_is_wrong(comparison: Comparison, wrong: bool, tmp_path: Path) -> None:
    draw(calibration(comparison), tmp_path / "c.png")
    with Image.open(tmp_path / "c.png") as picture:
        assert picture.format == "PNG"
        colours = [colour for _, colour in picture.convert("RGB").getcolors(2**24) or []]
    # Two false negatives, the most of any cell: 90 % of the red on white.
    reddest = max(red - green for red, green, _ in colours)  # type: ignore[misc]
    assert (reddest > 120) == wrong
