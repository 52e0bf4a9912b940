"""Names of streams and subjects: filters cover what they should, and nothing of another episode, split or run."""

import zlib

import pytest

from bus.subjects import Subjects, matches
from bus.topology import NUM_SHARDS, shared_queues, streams
from schemas.bus_config import BusConfig
from schemas.errors import ConfigurationError
from schemas.ids import EpisodeId, RunName, WorkerId, shard_of
from schemas.messages import Role, Split

CONFIG = BusConfig(run=RunName("a"), num_shards=8)
SUBJECTS = Subjects(RunName("a"), num_shards=8)
EPISODE = EpisodeId("train-r0001-t1-m0")


@pytest.mark.parametrize(
    ("subject_filter", "subject", "covered"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.b.c", False),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        (">", "a", True),
        ("*.b.>", "a.b.c.d", True),
    ],
)
def test_wildcards(subject_filter: str, subject: str, covered: bool) -> None:
    assert matches(subject_filter, subject) is covered


def test_a_chain_covers_every_record_of_its_episode_alone() -> None:
    chain = SUBJECTS.chain(EPISODE)
    records = [SUBJECTS.chain_task(EPISODE), SUBJECTS.chain_done(EPISODE), SUBJECTS.chain_record(EPISODE, 2, "obs", 3)]
    assert all(matches(chain, record) for record in records)
    assert not matches(chain, SUBJECTS.chain_task(EpisodeId(EPISODE + "1")))


def test_an_attempt_covers_its_own_records_alone() -> None:
    attempt = SUBJECTS.chain_attempt(EPISODE, 1)
    assert all(matches(attempt, SUBJECTS.chain_record(EPISODE, 1, kind, 12)) for kind in ("start", "obs", "act"))
    others = [SUBJECTS.chain_record(EPISODE, other, "obs", 1) for other in (2, 10, 11)]
    assert not any(
        matches(attempt, subject) for subject in (*others, SUBJECTS.chain_task(EPISODE), SUBJECTS.chain_done(EPISODE))
    )


def test_a_screenshot_is_found_as_documented_for_other_languages() -> None:
    shard = zlib.crc32(b"train-r0001-t1-m0") % 8
    assert SUBJECTS.chain_record(EPISODE, 2, "obs", 3) == f"a.ep.{shard}.train-r0001-t1-m0.2.obs.3"
    assert SUBJECTS.episodes(SUBJECTS.shard(EPISODE)) == f"a_EPISODES{shard}"


def test_every_subject_belongs_to_one_stream() -> None:
    subjects = [
        *(SUBJECTS.chain_record(EpisodeId(f"e{index}"), 1, "act", 0) for index in range(50)),
        SUBJECTS.task(Split.EVAL, EPISODE),
        SUBJECTS.step_any(Split.TRAIN, EPISODE),
        SUBJECTS.trajectory(Split.TRAIN, EPISODE),
        SUBJECTS.judgement(Split.TRAIN, "rubric", EPISODE),
        SUBJECTS.heartbeat(Role.JUDGE, WorkerId("w")),
        SUBJECTS.lease("feeder"),
        SUBJECTS.position("archive"),
        SUBJECTS.dead("a_TASKS"),
    ]
    specs = streams(SUBJECTS, CONFIG)
    for subject in subjects:
        owners = [spec.name for spec in specs if any(matches(wanted, subject) for wanted in spec.subjects)]
        assert len(owners) == 1, subject


def test_queues_of_one_stream_never_share_a_message() -> None:
    # A work-queue stream refuses consumers whose filters overlap.
    queues = shared_queues(SUBJECTS, CONFIG, ())
    subjects = [SUBJECTS.task(split, EPISODE) for split in Split] + [SUBJECTS.step_any(split, EPISODE) for split in Split]
    for subject in subjects:
        assert sum(matches(wanted, subject) for queue in queues for wanted in queue.subject_filters) == 1, subject


def test_an_offer_is_stored_nowhere() -> None:
    subject = SUBJECTS.wake(WorkerId("w"))
    assert not any(matches(wanted, subject) for spec in streams(SUBJECTS, CONFIG) for wanted in spec.subjects)


def test_every_stream_says_how_many_shards_there_are() -> None:
    assert all(dict(spec.metadata) == {NUM_SHARDS: "8"} for spec in streams(SUBJECTS, CONFIG))


def test_only_the_newest_of_a_subject_is_ever_replaced() -> None:
    replaced = {spec.name for spec in streams(SUBJECTS, CONFIG) if spec.discard == "old"}
    assert replaced == {
        SUBJECTS.served,
        SUBJECTS.heartbeats,
        SUBJECTS.positions,
        SUBJECTS.leases,
        SUBJECTS.blocklist,
        SUBJECTS.turns,
        SUBJECTS.feeding,
    }


def test_limits_are_the_configured_ones() -> None:
    config = BusConfig(run=RunName("a"), episodes_max_gb=2.0, results_max_gb=0.5, max_queued_tasks=7)
    specs = {spec.name: spec for spec in streams(SUBJECTS, config)}
    assert specs[SUBJECTS.episodes(0)].max_bytes == 2_000_000_000
    assert specs[SUBJECTS.judged].max_bytes == 500_000_000
    assert specs[SUBJECTS.tasks].max_msgs == 7
    unlimited = {spec.name: spec for spec in streams(SUBJECTS, CONFIG)}
    assert (unlimited[SUBJECTS.judged].max_bytes, unlimited[SUBJECTS.tasks].max_msgs) == (-1, -1)


def test_shards_are_used_evenly() -> None:
    counts = [0] * 8
    for index in range(8000):
        counts[shard_of(EpisodeId(f"train-r0001-t{index}-m0"), 8)] += 1
    assert min(counts) > 800


def test_live_actions_are_heard_by_their_own_attempt() -> None:
    shard = SUBJECTS.shard(EPISODE)
    assert matches(SUBJECTS.live(EPISODE, 2), f"a.live.{shard}.{EPISODE}.2.act.0")
    assert not matches(SUBJECTS.live(EPISODE, 2), f"a.live.{shard}.{EPISODE}.1.act.0")


@pytest.mark.parametrize("run", ["", "two words", "a.b", "a>", "x" * 129])
def test_a_run_name_that_is_no_token_is_refused(run: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot name a stream"):
        Subjects(RunName(run))
