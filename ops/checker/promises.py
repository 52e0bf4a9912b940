"""The promises about counting, checked on a ledger. Pure: a ledger in, what is wrong with it out."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ops.checker.chains import chain_fault
from ops.checker.ledger import Kind, Ledger, Ruled
from schemas.ids import EpisodeId
from schemas.messages import Checkpoint, Verdict

_DECIDED = (Verdict.SUCCESS, Verdict.FAILURE)


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
    unknown: tuple[str, ...]
    """Trajectories or judgements of episodes that nobody admitted."""
    broken_chains: tuple[str, ...]
    differing: tuple[str, ...]
    """Published or judged trajectories that are not what their chain ends in, byte for byte."""
    unfounded: tuple[str, ...]
    """Judgements with a reward and no verdict, or the other way round."""
    miscounted: tuple[str, ...]
    """Checkpoints that do not consume exactly the next judgements."""

    @property
    def faults(self) -> dict[str, tuple[str, ...]]:
        named = ("unfinished", "unpublished", "unjudged", "unknown", "broken_chains", "differing", "unfounded", "miscounted")
        return {name: getattr(self, name) for name in named}

    @property
    def holds_so_far(self) -> bool:
        """What holds at any time, also while episodes are under way."""
        open_ = ("unfinished", "unpublished", "unjudged")
        return self.num_duplicates == 0 and not any(found for name, found in self.faults.items() if name not in open_)

    @property
    def holds(self) -> bool:
        return self.num_duplicates == 0 and not any(self.faults.values())


def check(ledger: Ledger, *, batch: int | None = None) -> Findings:
    """Checks a run that has ended. `batch`: judgements that one checkpoint consumes; None: as the first one did."""
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
        unjudged=_sorted(published.keys() - judged),
        unknown=_sorted((published.keys() | judged | ledger.chains.keys()) - admitted),
        broken_chains=_broken(ledger),
        differing=_differing(ledger, ends),
        unfounded=tuple(fault for record in ledger.ruled if (fault := _unfounded(record))),
        miscounted=miscounted(ledger.checkpoints, ledger.ruled, batch=batch),
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


def miscounted(checkpoints: Sequence[Checkpoint], ruled: Sequence[Ruled], *, batch: int | None) -> tuple[str, ...]:
    """Recounts JUDGED: every version must consume exactly the next `batch` judgements that count, in JUDGED's order."""
    counted = [record.seq for record in ruled if record.counts]
    size = batch or (checkpoints[1].num_trajectories if len(checkpoints) > 1 else 0)
    faults: list[str] = []
    for index, checkpoint in enumerate(checkpoints):
        version = checkpoint.version
        if version != index:
            faults.append(f"version {version} stands where version {index} belongs")
        if checkpoint.parent != (index - 1 if index else None):
            faults.append(f"version {version} says that its parent is {checkpoint.parent}")
        if index == 0:
            continue
        total = index * size
        if checkpoint.num_trajectories != total:
            faults.append(f"version {version} has consumed {checkpoint.num_trajectories} trajectories, not {total}")
        elif not 0 < total <= len(counted) or checkpoint.judged_seq != counted[total - 1]:
            where = counted[total - 1] if 0 < total <= len(counted) else "nowhere"
            faults.append(f"version {version} ends at judgement {checkpoint.judged_seq}; its last one stands at {where}")
    return tuple(faults)
