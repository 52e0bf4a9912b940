"""The promises about counting, checked on a ledger. Pure: a ledger in, what is wrong with it out."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from ops.audit.chains import chain_fault
from ops.audit.feed import Feed
from ops.audit.ledger import Kind, Ledger, Ruled
from schemas.ids import EpisodeId
from schemas.messages import Checkpoint, Verdict

_DECIDED = (Verdict.SUCCESS, Verdict.FAILURE)
_OPEN = ("unfinished", "unpublished", "unjudged", "unused")
"""What every run has while it goes on."""
_BROKEN = ("unknown", "broken_chains", "differing", "unfounded", "miscounted", "unsound")


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the streams hold, and everything in them that breaks a promise."""

    num_tasks: int
    num_trajectories: int
    num_judgements: int
    num_checkpoints: int
    num_takeovers: int
    """Attempts beyond the first."""
    num_duplicates: int
    """Records beyond the first under one identity: admitted, ended, published, or judged twice by one rubric."""
    unfinished: tuple[str, ...]
    """Admitted episodes without an end."""
    unpublished: tuple[str, ...]
    """Ended episodes that never came before a judge or consumer."""
    unjudged: tuple[str, ...]
    """Published episodes without a judgement, of each rubric."""
    unused: tuple[str, ...]
    """Whole batches of judgements that no version consumed, in a run that has a trainer."""
    unknown: tuple[str, ...]
    """Trajectories or judgements of episodes that nobody admitted."""
    broken_chains: tuple[str, ...]
    differing: tuple[str, ...]
    """Published or judged trajectories that are not what their chain ends in, byte for byte."""
    unfounded: tuple[str, ...]
    """Judgements with a reward and no verdict, or the other way round."""
    miscounted: tuple[str, ...]
    """Checkpoints that do not consume exactly the next judgements."""
    unsound: tuple[str, ...]
    """Records that are gone, that nobody can read, or that are not what their subject says."""

    @property
    def faults(self) -> dict[str, tuple[str, ...]]:
        return {name: getattr(self, name) for name in (*_OPEN, *_BROKEN)}

    @property
    def holds_so_far(self) -> bool:
        """What holds at any time, also while episodes are under way."""
        return self.num_duplicates == 0 and not any(self.faults[name] for name in _BROKEN)

    @property
    def holds(self) -> bool:
        return self.num_duplicates == 0 and not any(self.faults.values())


def check(ledger: Ledger, *, feed: Feed, rubrics: Sequence[str] = ()) -> Findings:
    """Checks a run that has ended. `rubrics`: by which every episode has to be judged; empty: by any."""
    ends = {episode: link.digest for episode, links in ledger.chains.items() for link in links if link.kind is Kind.DONE}
    admitted = {episode for episode, links in ledger.chains.items() if any(link.kind is Kind.TASK for link in links)}
    published = Counter(record.episode for record in ledger.published)
    ruled = Counter((record.episode, record.rubric) for record in ledger.ruled)
    judged = {episode for episode, _ in ruled}
    identities = Counter(
        (episode, link.kind, link.attempt, link.step) if link.kind is not Kind.DONE else (episode, link.kind, 0, 0)
        for episode, links in ledger.chains.items()
        for link in links
    )
    return Findings(
        num_tasks=len(admitted),
        num_trajectories=published.total(),
        num_judgements=ruled.total(),
        num_checkpoints=len(ledger.checkpoints),
        num_takeovers=sum(link.attempt > 1 for links in ledger.chains.values() for link in links if link.kind is Kind.START),
        num_duplicates=sum(count - 1 for counter in (published, ruled, identities) for count in counter.values()),
        unfinished=_sorted(admitted - ends.keys()),
        unpublished=_sorted(ends.keys() - published.keys()),
        unjudged=_unjudged(published.keys(), ruled.keys(), rubrics),
        unused=unused(ledger.checkpoints, ledger.ruled, feed),
        unknown=_sorted((published.keys() | judged | ledger.chains.keys()) - admitted),
        broken_chains=_broken(ledger),
        differing=_differing(ledger, ends),
        unfounded=tuple(fault for record in ledger.ruled if (fault := _unfounded(record))),
        miscounted=miscounted(ledger.checkpoints, ledger.ruled, feed),
        unsound=tuple(ledger.unsound),
    )


def _sorted(episodes: Iterable[EpisodeId]) -> tuple[str, ...]:
    return tuple(sorted(episodes))


def _broken(ledger: Ledger) -> tuple[str, ...]:
    faults = ((episode, chain_fault(links)) for episode, links in sorted(ledger.chains.items()))
    return tuple(f"{episode}: {fault}" for episode, fault in faults if fault)


def _differing(ledger: Ledger, ends: dict[EpisodeId, str]) -> tuple[str, ...]:
    stored = [(record.episode, "published", record.digest) for record in ledger.published]
    stored += [(record.episode, f"judged by {record.rubric}", record.digest) for record in ledger.ruled]
    return tuple(
        f"{episode}: what was {what} is not the end of its chain"
        for episode, what, digest in stored
        if episode in ends and ends[episode] != digest
    )


def _unfounded(record: Ruled) -> str | None:
    decided = record.verdict in _DECIDED
    if decided != (record.reward is not None):
        return f"{record.episode}: verdict {record.verdict.value} with reward {record.reward}"
    if decided and not record.finished:
        return f"{record.episode}: verdict {record.verdict.value} on an episode that was not played to an end"
    return None


def _unjudged(
    published: Iterable[EpisodeId], ruled: Collection[tuple[EpisodeId, str]], rubrics: Sequence[str]
) -> tuple[str, ...]:
    if not rubrics:
        return _sorted(set(published) - {episode for episode, _ in ruled})
    missing = [(episode, rubric) for episode in published for rubric in rubrics if (episode, rubric) not in ruled]
    return tuple(sorted(episode if len(rubrics) == 1 else f"{episode} by {rubric}" for episode, rubric in missing))


def miscounted(checkpoints: Sequence[Checkpoint], ruled: Sequence[Ruled], feed: Feed) -> tuple[str, ...]:
    """Recounts JUDGED: every version must consume exactly the next judgements that count, in JUDGED's order."""
    feeding = feed.taken(ruled)
    faults: list[str] = []
    total = 0
    for index, checkpoint in enumerate(checkpoints):
        version = checkpoint.version
        if version != index:
            faults.append(f"version {version} stands where version {index} belongs")
        if checkpoint.parent != (index - 1 if index else None):
            faults.append(f"version {version} says that its parent is {checkpoint.parent}")
        if index == 0:
            continue
        taken = next(feeding)
        total += taken.size
        if checkpoint.num_trajectories != total:
            faults.append(f"version {version} has consumed {checkpoint.num_trajectories} trajectories, not {total}")
        elif not taken.is_whole or checkpoint.judged_seq != taken.seqs[-1]:
            where = taken.seqs[-1] if taken.is_whole else "nowhere"
            faults.append(f"version {version} ends at judgement {checkpoint.judged_seq}; its last one stands at {where}")
    return tuple(faults)


def unused(checkpoints: Sequence[Checkpoint], ruled: Sequence[Ruled], feed: Feed) -> tuple[str, ...]:
    """What a trainer that has ended left: online, everything that counts is consumed but for less than a version takes."""
    if not checkpoints or feed.passes.num_stored is not None:
        return ()
    following = islice(feed.taken(ruled), len(checkpoints) - 1, None)
    left = len(feed.counted(ruled)) - checkpoints[-1].num_trajectories
    return (f"{left} judgements that no version consumed",) if next(following).is_whole else ()
