"""Episodes whose traffic is recorded, in a real Chromium on a site of the test's own: what is kept, and what judges say."""

import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partialmethod
from pathlib import Path
from typing import Any

import msgspec
import pytest

from browser_workers.har.log import NetworkLog
from bus.evidence import Evidence
from bus.ports import Bus
from judges.episode import JudgedEpisode
from judges.named.webarena_verified_v1 import NAME
from judges.webarena.examiner import open_examiner
from judges.webarena.judge import WebArenaVerifiedJudge
from schemas.messages import Action, ActionKind, NetworkRecord, Observation, Outcome, Task, Trajectory, Verdict
from tests.deadlines import HANGS_S
from tests.support.browsers.local_site import LocalSite, Reply, local_site
from tests.support.browsers.page_plays import SUBJECTS, play, playing
from tests.support.judging.webarena import answers, evaluated, package_python, sends

pytestmark = [pytest.mark.anyio, pytest.mark.integration]
SECRET = "hunter2hunter2"
DONE = "in the cart"
SCRIPT = f"""fetch('/api/cart?api_key={SECRET}', {{method: 'POST', body: JSON.stringify({{id: 3, pin: '{SECRET}'}}),
    headers: {{'content-type': 'application/json', 'authorization': 'Bearer {SECRET}'}}}})
    .then(answer => answer.json()).then(() => {{ document.title = '{DONE}' }})"""
PAGES = {
    "/": Reply(
        f"""<!doctype html><title>shop</title><img src="/kite.png"><form method=post action=/login>
        <input type=hidden name=user value=me><input type=hidden name=password value={SECRET}>
        <button style="position: fixed; inset: 0">in</button></form>""".encode()
    ),
    "/login": Reply(status="302 Found", headers={"location": "/kites", "set-cookie": f"sid={SECRET}; Path=/"}),
    "/kites": Reply(
        f"<!doctype html><title>kites</title><script>{SCRIPT}</script>".encode(), headers={"set-cookie": "flash=seen"}
    ),
    f"/api/cart?api_key={SECRET}": Reply(
        json.dumps({"qty": 1, "token": SECRET}).encode(), headers={"content-type": "application/json"}
    ),
}
CHANGED = json.dumps({"task_type": "MUTATE", "status": "SUCCESS", "retrieved_data": None, "error_details": None})


@dataclass(frozen=True)
class Played:
    trajectory: Trajectory
    record: NetworkRecord
    evidence: Evidence

    @property
    def log(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(gzip.decompress(self.record.har))["log"]
        return found


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def asked_of(site: LocalSite, index: int) -> Task:
    """To log in, which puts something into the cart and shows the kites."""
    at = {"shopping": site.origin}
    task = evaluated(
        answers("mutate"),
        sends("__SHOPPING__/login", http_method="POST", response_status=302, post_data={"user": "me"}),
        sends(
            "__SHOPPING__/api/cart",
            http_method="POST",
            post_data={"id": 3},
            response_content={"qty": 1},
            ignored_query_params=["api_key"],
        ),
        sends("__SHOPPING__/kites", response_cookies={"flash": "^se.*$"}),
        sites=at,
        traffic={"bodies": True, "cookies": ["flash"]},
    )
    return msgspec.structs.replace(
        task, episode=f"{task.episode}{index}", index=index, website=f"{site.origin}/", max_steps=1000
    )


def does(observation: Observation) -> Action:
    """The first episode logs in, and answers when all that follows is there; the second answers at once."""
    if observation.episode.endswith("0"):
        if observation.step == 0:
            return Action(kind=ActionKind.CLICK, point=(500, 500))
        if observation.title != DONE:
            return Action(kind=ActionKind.WAIT, seconds=0.1)
    return Action(kind=ActionKind.ANSWER, text=CHANGED)


@pytest.fixture(scope="module")
async def episodes(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Played, Played]]:
    folder: Path = tmp_path_factory.mktemp("traffic")
    with pytest.MonkeyPatch.context() as patch:
        # A browser on a machine that is busy takes long to say what became of a request.
        patch.setattr("browser_workers.chromium.recording._ANSWER_S", HANGS_S)
        patch.setattr("browser_workers.play._TRAFFIC_S", HANGS_S)
        patch.setattr(NetworkLog, "settled", partialmethod(NetworkLog.settled, under_way_s=HANGS_S))
        async with local_site(PAGES) as site, playing(folder, does, {}, num_slots=1, record_network=True) as bus:
            yield await played_in(bus, site)


async def played_in(bus: Bus, site: LocalSite) -> tuple[Played, Played]:
    evidence = Evidence(bus, SUBJECTS)
    found = []
    for index in range(2):
        (trajectory,) = await play(bus, [asked_of(site, index)])
        record = await evidence.network(trajectory)
        assert record is not None
        found.append(Played(trajectory, record, evidence))
    return found[0], found[1]


async def test_documents_forms_and_fetches_are_there_in_order(episodes: tuple[Played, Played]) -> None:
    played, other = episodes
    assert (played.trajectory.outcome, other.trajectory.outcome) == (Outcome.ANSWERED, Outcome.ANSWERED)
    assert played.trajectory.network == played.record.summary
    assert played.record.summary.missing == ()
    entries = played.log["entries"]
    sent = [(each["request"]["method"], each["request"]["url"].rpartition(":")[2].partition("/")[2]) for each in entries]
    assert sent[:3] == [("GET", ""), ("POST", "login"), ("GET", "kites")]
    assert sent[3][0] == "POST"
    assert sent[3][1].startswith("api/cart?api_key=")
    assert [each["response"]["status"] for each in entries[:4]] == [200, 302, 200, 200]
    assert entries[1]["response"]["redirectURL"] == "/kites"
    assert "user=me" in entries[1]["request"]["postData"]["text"]
    assert json.loads(entries[3]["response"]["content"]["text"])["qty"] == 1
    assert entries[2]["response"]["cookies"] == [{"name": "flash", "value": "seen"}]
    accepted = {each["name"].lower(): each["value"] for each in entries[0]["request"]["headers"]}
    assert accepted["accept"].startswith("text/html")
    assert all(entry["startedDateTime"] > "2020" for entry in entries)
    assert len(other.log["entries"]) == 1


async def test_no_secret_is_anywhere_in_the_record(episodes: tuple[Played, Played]) -> None:
    for played in episodes:
        har = gzip.decompress(played.record.har).decode()
        assert SECRET not in har
        assert "Bearer" not in har
        assert '"sid"' not in har
        names = {header["name"].lower() for entry in played.log["entries"] for header in entry["request"]["headers"]}
        assert names.isdisjoint({"cookie", "authorization", "proxy-authorization"})


async def test_the_benchmarks_evaluators_tell_the_right_way_from_the_wrong_one(episodes: tuple[Played, Played]) -> None:
    async with open_examiner(package_python()) as examiner:
        judge = WebArenaVerifiedJudge(NAME, examiner)
        right, wrong = [await judge.judge(JudgedEpisode(played.trajectory, played.evidence)) for played in episodes]
    assert [stage.reasoning for stage in right.stages] == ["as expected"] * 4
    assert (right.verdict, right.reward) == (Verdict.SUCCESS, 1.0)
    assert (wrong.verdict, wrong.reward) == (Verdict.FAILURE, 0.0)
    assert [(stage.stage, stage.passed) for stage in wrong.stages] == [
        ("response", True),
        ("network_1", False),
        ("network_2", False),
        ("network_3", False),
    ]
