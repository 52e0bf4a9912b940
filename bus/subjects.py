"""Every subject and stream name of a run, in one place. `docs/messages.md` lists them for readers in other languages.

A run named `r` owns the subjects `r.>` and the streams `R_*`; two runs on one server never meet.
"""

import re
from dataclasses import dataclass

from schemas.ids import EpisodeId, PolicyVersion, RunName, WorkerId, shard_of, subject_token
from schemas.messages import Role, Split


@dataclass(frozen=True, slots=True)
class Subjects:
    """Names of one run's streams and subjects."""

    run: RunName
    num_shards: int = 1

    def __post_init__(self) -> None:
        subject_token(self.run, what="run name")

    # streams ----------------------------------------------------------------------------------------------------------

    def stream(self, name: str) -> str:
        return f"{self.run}_{name}"

    @property
    def tasks(self) -> str:
        return self.stream("TASKS")

    @property
    def steps(self) -> str:
        return self.stream("STEPS")

    @property
    def trajectories(self) -> str:
        return self.stream("TRAJECTORIES")

    @property
    def judged(self) -> str:
        return self.stream("JUDGED")

    @property
    def checkpoints(self) -> str:
        return self.stream("CHECKPOINTS")

    @property
    def weight_chunks(self) -> str:
        return self.stream("WEIGHTS")

    @property
    def served(self) -> str:
        return self.stream("SERVED")

    @property
    def heartbeats(self) -> str:
        return self.stream("HEARTBEATS")

    @property
    def positions(self) -> str:
        return self.stream("POSITIONS")

    @property
    def advisories(self) -> str:
        return self.stream("ADVISORIES")

    @property
    def leases(self) -> str:
        return self.stream("LEASES")

    @property
    def calls(self) -> str:
        return self.stream("CALLS")

    @property
    def feeding(self) -> str:
        return self.stream("FEEDING")

    @property
    def blocklist(self) -> str:
        return self.stream("BLOCKLIST")

    @property
    def turns(self) -> str:
        return self.stream("TURNS")

    def episodes(self, shard: int) -> str:
        return self.stream(f"EPISODES{shard}")

    def shard(self, episode: EpisodeId) -> int:
        return shard_of(episode, self.num_shards)

    # queues -----------------------------------------------------------------------------------------------------------

    def task(self, split: Split, episode: EpisodeId) -> str:
        return f"{self.run}.task.{split.value}.{episode}"

    # A wake-up is queued once while its step is unanswered, so its subject names the step: one that is answered but not yet
    # acknowledged must not keep the next step's out.

    def step_any(self, split: Split, episode: EpisodeId, attempt: int = 0, step: int = 0) -> str:
        return f"{self.run}.step.{split.value}.any.{episode}.{attempt}.{step}"

    def wake(self, worker: WorkerId) -> str:
        """Where steps are offered to one policy worker; stored nowhere."""
        return f"{self.run}.wake.{worker}"

    def phase(self, worker: WorkerId) -> str:
        """Where one browser worker tells the phases of its episodes' steps; stored nowhere."""
        return f"{self.run}.phase.{worker}"

    # an episode's chain -----------------------------------------------------------------------------------------------

    def chain(self, episode: EpisodeId) -> str:
        """Filter over every record of an episode, all attempts: what compare-and-set is checked against."""
        return f"{self.run}.ep.{self.shard(episode)}.{episode}.>"

    def chain_task(self, episode: EpisodeId) -> str:
        return f"{self.run}.ep.{self.shard(episode)}.{episode}.task"

    def chain_done(self, episode: EpisodeId) -> str:
        return f"{self.run}.ep.{self.shard(episode)}.{episode}.done"

    def chain_record(self, episode: EpisodeId, attempt: int, kind: str, step: int) -> str:
        """`kind` is start, obs, act or net."""
        return f"{self.run}.ep.{self.shard(episode)}.{episode}.{attempt}.{kind}.{step}"

    def chain_kind(self, episode: EpisodeId, attempt: int, kind: str) -> str:
        """Filter over one kind of record of one attempt: obs or act."""
        return f"{self.run}.ep.{self.shard(episode)}.{episode}.{attempt}.{kind}.*"

    def chain_attempt(self, episode: EpisodeId, attempt: int) -> str:
        """Filter over start, observations and answers of one attempt."""
        return f"{self.run}.ep.{self.shard(episode)}.{episode}.{attempt}.>"

    def chains(self, shard: int, kind: str) -> str:
        """Filter over one kind of record of all episodes in a shard: task or done."""
        return f"{self.run}.ep.{shard}.*.{kind}"

    def live(self, episode: EpisodeId, attempt: int) -> str:
        """What the browser that plays an attempt listens to: its accepted answers, which the server republishes, and who has
        its step in hand."""
        return f"{self.run}.live.{self.shard(episode)}.{episode}.{attempt}.>"

    def held(self, episode: EpisodeId, attempt: int, step: int) -> str:
        """Where the policy worker that took a step from the queue says so; stored nowhere."""
        return f"{self.run}.live.{self.shard(episode)}.{episode}.{attempt}.held.{step}"

    # results ----------------------------------------------------------------------------------------------------------

    def trajectory(self, split: Split, episode: EpisodeId) -> str:
        return f"{self.run}.trajectory.{split.value}.{episode}"

    def judgement(self, split: Split, rubric: str, episode: EpisodeId) -> str:
        return f"{self.run}.judged.{split.value}.{rubric}.{episode}"

    def judgements(self, split: Split | None) -> str:
        return f"{self.run}.judged.{split.value if split else '*'}.>"

    def judgements_by(self, rubric: str, split: Split | None = None) -> str:
        """Filter over the judgements of one rubric."""
        return f"{self.run}.judged.{split.value if split else '*'}.{rubric}.*"

    def judgement_of(self, episode: EpisodeId) -> str:
        """Filter over the judgements of one episode, all rubrics."""
        return f"{self.run}.judged.*.*.{episode}"

    def call(self, rubric: str, episode: EpisodeId, question: str, answer: int) -> str:
        """Where one answer of a judge's model is stored."""
        return f"{self.run}.call.{rubric}.{episode}.{question}.{answer}"

    def calls_of(self, rubric: str, episode: EpisodeId) -> str:
        """Filter over the answers that one judge had about one episode."""
        return f"{self.run}.call.{rubric}.{episode}.*.*"

    def blocked(self, site: str) -> str:
        """A site is one token: its dots are written `_`, and what is no letter, digit or hyphen as `=` and its number.

        Example: `a_b.example.org` is `a=5Fb_example_org`, so that no two sites share a subject.
        """
        return f"{self.run}.blocked.{site_token(site)}"

    def turn(self, kind: str, site: str, egress: str, slot: str) -> str:
        """Where a slot of a site's limit is taken. `kind` is minute or flight; `egress` may be empty; slot `*` means all."""
        return f"{self.run}.turn.{kind}.{site_token(site)}.{site_token(egress) or 'direct'}.{slot}"

    def checkpoint(self, version: PolicyVersion) -> str:
        return f"{self.run}.checkpoint.{version}"

    def weights(self, file_sha256: str, begin: int, end: int) -> str:
        """Where bytes `[begin, end)` of the file with this hash are stored."""
        return f"{self.run}.weights.{file_sha256}.{begin}-{end}"

    def weights_of(self, file_sha256: str) -> str:
        """Filter over everything stored of one file."""
        return f"{self.run}.weights.{file_sha256}.*"

    def served_by(self, worker: WorkerId) -> str:
        """Where one policy worker says what it serves."""
        return f"{self.run}.served.{worker}"

    def job_node(self, node: str) -> str:
        return f"{self.run}.job.{node}"

    def heartbeat(self, role: Role, worker: WorkerId) -> str:
        return f"{self.run}.heartbeat.{role.value}.{worker}"

    def control(self, role: Role, worker: WorkerId) -> str:
        """Where one worker is asked how it stands, and told to leave; stored nowhere."""
        return f"{self.run}.control.{role.value}.{worker}"

    @property
    def cancel(self) -> str:
        return f"{self.run}.cancel"

    def position(self, name: str) -> str:
        """How far a named consumer has read."""
        return f"{self.run}.position.{name}"

    @property
    def feeder_memory(self) -> str:
        """What the feeder knows."""
        return f"{self.run}.feeding.state"

    def task_results(self, part: int) -> str:
        """What sampling by results knows of a part of the tasks."""
        return f"{self.run}.feeding.results.{part}"

    @property
    def spent(self) -> str:
        """What the calls of all judges came to."""
        return f"{self.run}.spent"

    def lease(self, name: str) -> str:
        return f"{self.run}.lease.{name}"

    def dead(self, stream: str) -> str:
        return f"{self.run}.dead.{stream}"

    def fault(self, role: Role, item: str, number: int) -> str:
        """Where an item's error with this number, from 1, is told that nobody foresaw. An item is one token."""
        return f"{self.run}.fault.{role.value}.{item}.{number}"

    def resent(self, letter_seq: int) -> str:
        return f"{self.run}.resent.{letter_seq}"

    def everything(self, *tokens: str) -> str:
        """Filter over all subjects that begin with these tokens."""
        return ".".join((self.run, *tokens, ">"))


def site_token(site: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", _in_token, site)


def _in_token(character: re.Match[str]) -> str:
    return "_" if character[0] == "." else f"={ord(character[0]):02X}"


def matches(subject_filter: str, subject: str) -> bool:
    """NATS wildcards: `*` is one token, a last `>` is one or more."""
    wanted, tokens = subject_filter.split("."), subject.split(".")
    for index, want in enumerate(wanted):
        if want == ">":
            return len(tokens) > index
        if index >= len(tokens) or want not in ("*", tokens[index]):
            return False
    return len(tokens) == len(wanted)
