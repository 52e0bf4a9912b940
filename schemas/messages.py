"""Every message on the bus: frozen, tagged structs, encoded as MessagePack.

Evolution follows msgspec's rules: fields are only added, each with a default; a field is never renamed, retyped or reused;
a change that an old reader could misread gets a new tag (`name/2`). `tests/fixtures/messages` keeps encoded examples of
every released version, and a test reads them all.
"""

import enum
from typing import Literal

import msgspec

from schemas.ids import EpisodeId, GroupId, PolicyVersion, RunName, TaskId, WorkerId


class Split(enum.Enum):
    TRAIN = "train"
    EVAL = "eval"


class Outcome(enum.Enum):
    """How an episode ended."""

    ANSWERED = "answered"
    """The policy gave an answer."""
    DONE = "done"
    """The environment itself declared the episode over."""
    STEP_LIMIT = "step_limit"
    TIMED_OUT = "timed_out"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def finished(self) -> bool:
        """Whether the policy played to an end that a judge can score."""
        return self in (Outcome.ANSWERED, Outcome.DONE, Outcome.STEP_LIMIT)


class ActionEffect(enum.Enum):
    """What the last action did, as far as the browser can tell."""

    NONE = "none"
    """There was no action yet."""
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    NAVIGATION_FAILED = "navigation_failed"
    REFUSED = "refused"
    """The action could not be carried out; `Observation.error` says why."""


class Verdict(enum.Enum):
    SUCCESS = "success"
    FAILURE = "failure"
    EXCLUDED = "excluded"
    """There was nothing to judge (a failed or cancelled episode): trained on by no one."""
    ERROR = "error"
    """No verdict could be had after every retry: neither success nor failure, trained on by no one."""


class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all parts of messages."""


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all messages; subclasses carry a versioned tag."""


class RecordRef(Struct, frozen=True, array_like=True):
    """Names one observation or answer of an episode's chain, wherever the chain is kept: in a run's streams or an archive.

    No message holds one: a message says which steps it means, and the episode and attempt are its own.
    """

    episode: EpisodeId
    attempt: int
    kind: Literal["obs", "act"]
    step: int


class Fact(Struct, frozen=True):
    """One fact of a rubric, with the context of its group."""

    description: str
    difficulty: int = 1
    group: str = ""


class CheckKind(enum.Enum):
    """What a check looks at."""

    ANSWER = "answer"
    URL = "url"
    PAGE = "page"
    """The value of a JavaScript expression in the page as the episode left it."""


class CheckMatch(enum.Enum):
    """How a value is compared with what was expected; case and runs of white space never count."""

    EQUALS = "equals"
    CONTAINS = "contains"
    NUMBER = "number"
    """The first number in the value equals the expected one, to a relative 1e-6."""
    PATTERN = "pattern"
    """A regular expression (Python's) is found in the value, within a second."""
    FUZZY = "fuzzy"
    """The words are nearly equal in any order, and the numbers and negations are the same; not of addresses."""


class Check(Struct, frozen=True):
    """One programmatic condition on how an episode ended."""

    kind: CheckKind
    expected: tuple[str, ...]
    """Any of them will do."""
    match: CheckMatch = CheckMatch.EQUALS
    expression: str = ""
    """Of a page check."""


class FinalState(Struct, frozen=True):
    """The active page when its episode ended: what checks are compared with."""

    url: str
    title: str
    values: tuple[str, ...] = ()
    """Of the task's page checks, in order; empty where the expression failed."""


class Task(Message, frozen=True, tag="task/1"):
    """One admitted episode, as the feeder wrote it: the first record of the episode's chain."""

    run: RunName
    episode: EpisodeId
    group: GroupId
    task: TaskId
    split: Split
    index: int
    """Position in the feeder's schedule of this split, from 0; the feeder resumes behind the highest."""
    policy_version: PolicyVersion
    """Version that was newest when the episode was admitted."""
    instruction: str
    website: str
    """Where the episode starts: a URL, or `suite:page?query` for a page that the browser worker serves itself."""
    max_steps: int
    timeout_s: float = 18_000.0
    """Seconds from the first page on; WebGym's task_timeout_minutes."""
    domain: str = ""
    subdomain: str = ""
    difficulty: int = 1
    facts: tuple[Fact, ...] = ()
    reference_answer: str | None = None
    checks: tuple[Check, ...] = ()
    """Programmatic conditions, all of which a success meets; empty: the environment or a judge scores."""
    greedy: bool = False
    """Decode with temperature 0: a baseline that is not trained on."""
    demonstrate: bool = False
    """To be answered by the scripted oracle of the page, not by a policy: warm-start demonstrations."""
    results_seq: int = 0
    """Adaptive sampling: sequence on JUDGED up to which results counted when the task's round was drawn. Equal in all tasks of
    a round."""


class EpisodeStart(Message, frozen=True, tag="start/1"):
    """A browser worker took the episode; appending this fences whoever held it before."""

    episode: EpisodeId
    attempt: int
    worker: WorkerId


class Element(Struct, frozen=True):
    """One interactive element of a set-of-marks observation; the box is in viewport pixels."""

    id: int
    tag: str
    text: str
    box: tuple[int, int, int, int]
    """x, y, width, height."""


class Picture(Struct, frozen=True):
    """An encoded screenshot: as the browser encoded it, or with the marks of a set-of-marks observation drawn in."""

    data: bytes
    media_type: str
    width: int
    height: int


class BrowserTab(Struct, frozen=True):
    title: str
    url: str
    active: bool = False


class Observation(Message, frozen=True, tag="obs/1"):
    """What the policy sees at one step."""

    episode: EpisodeId
    attempt: int
    step: int
    """From 0."""
    picture: Picture
    url: str
    title: str
    effect: ActionEffect = ActionEffect.NONE
    error: str = ""
    same_picture: bool = False
    """The picture equals the previous step's, pixel for pixel."""
    elements: tuple[Element, ...] = ()
    """What the numbers in a set-of-marks picture stand for."""
    accessibility_tree: str = ""
    """Empty unless the run shows it to the policy."""
    tabs: tuple[BrowserTab, ...] = ()
    """All open tabs in the order that `Action.tab` counts them; empty while there is one."""
    hit: str = ""
    """What the last action's input reached, as in `button "Save"`."""
    changes: tuple[str, ...] = ()
    """What it changed, as far as the browser can tell: a phrase each."""
    page_text: str = ""
    """Only behind a `read_page`."""
    oracle: tuple[int, int, int, int] | None = None
    """Only in demonstrations: the box (x, y, width, height, viewport pixels) that the page's own scripted oracle clicks
    into. Never shown to a policy."""
    oracle_action: "Action | None" = None
    """Only in demonstrations: what the oracle does next, in coordinates; None: it clicks into the middle of its box."""


class ActionKind(enum.Enum):
    CLICK = "click"
    DOUBLE_CLICK = "double_click"
    RIGHT_CLICK = "right_click"
    DRAG = "drag"
    TYPE = "type"
    PRESS = "press"
    SELECT = "select"
    HOVER = "hover"
    SCROLL = "scroll"
    WAIT = "wait"
    GO_BACK = "go_back"
    NAVIGATE = "navigate"
    NEW_TAB = "new_tab"
    SWITCH_TAB = "switch_tab"
    CLOSE_TAB = "close_tab"
    READ_PAGE = "read_page"
    ANSWER = "answer"


class Action(Struct, frozen=True):
    """One parsed action. Which fields count depends on `kind`."""

    kind: ActionKind
    point: tuple[float, float] | None = None
    """On the 0-1000 grid of the picture: x to the right, y down."""
    element: int | None = None
    """Set-of-marks number instead of a point."""
    end_point: tuple[float, float] | None = None
    """Where a drag ends."""
    end_element: int | None = None
    text: str = ""
    """Text to type, URL to navigate to or to open in a new tab, option to select (its label or value), or the answer."""
    enter: bool = True
    """Of a type: press Enter behind the text."""
    keys: tuple[str, ...] = ()
    """Of a press: chords one after the other, each of keys joined by `+`, as in `Control+a`."""
    direction: str = "down"
    """Of a scroll: up, down, left or right."""
    tab: int | None = None
    """Of switch_tab and close_tab: position among the observation's tabs, from 1; None: the active one."""
    num_lines: int = 100
    """Of a read_page: lines of text from the top of the page."""
    seconds: float = 2.0
    """Of a wait."""


class VersionSpan(Struct, frozen=True):
    """Completion tokens `[start, end)` were sampled by one policy version."""

    start: int
    end: int
    version: PolicyVersion


class TokenUsage(Struct, frozen=True):
    """Tokens that an answer took, counted by whoever sampled it."""

    prompt: int
    """The cached ones included."""
    completion: int
    cached: int = 0


class StepRequest(Message, frozen=True, tag="act/1"):
    """The policy's answer to one observation: what to do, and everything needed to train on it."""

    episode: EpisodeId
    attempt: int
    step: int
    action: Action
    parsed: bool
    """False: the output could not be parsed and `action` is the fallback, a wait of 2 s."""
    response: str
    """Raw text of the completion."""
    thought: str = ""
    """The one-line description of the action that older rounds are summarised by."""
    prompt_tokens: tuple[int, ...] = ()
    """With picture placeholders expanded, exactly as the engine saw them."""
    completion_tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    """Of the completion tokens, after temperature and truncation (the sampler's own distribution)."""
    versions: tuple[VersionSpan, ...] = ()
    pictures: tuple[int, ...] = ()
    """Steps of this attempt whose observations' pictures stand in the prompt, in order."""
    worker: WorkerId = WorkerId("")
    temperature: float = 1.0
    finish_reason: str = "stop"
    queued_s: float = 0.0
    generated_s: float = 0.0
    usage: TokenUsage | None = None
    """As an endpoint that hides its tokens counted them."""

    @property
    def num_prompt(self) -> int:
        """Tokens, pictures' included."""
        return self.usage.prompt if self.usage else len(self.prompt_tokens)

    @property
    def num_completion(self) -> int:
        return self.usage.completion if self.usage else len(self.completion_tokens)

    @property
    def picture_refs(self) -> tuple[RecordRef, ...]:
        """The observations that `pictures` names."""
        return tuple(RecordRef(self.episode, self.attempt, "obs", step) for step in self.pictures)


class StepWake(Message, frozen=True, tag="wake/1"):
    """Wakes a policy worker up; names the observation only, and losing it loses nothing."""

    episode: EpisodeId
    attempt: int
    step: int
    observation_seq: int
    """The observation's sequence in the stream of its shard: the answer is appended behind exactly this."""


class StepPhase(Message, frozen=True, tag="phase/1"):
    """An episode's step is at this phase, told by its browser worker to whoever watches: stored nowhere, and losing it loses
    nothing."""

    episode: EpisodeId
    attempt: int
    step: int
    phase: Literal["deciding", "acting"]
    """deciding: its observation waits for the policy; acting: the accepted answer is carried out."""
    worker: WorkerId
    """The browser worker."""
    policy: WorkerId = WorkerId("")
    """Who answered."""


class Timings(Struct, frozen=True):
    """Seconds an episode spent in each phase."""

    reset_s: float = 0.0
    observe_s: float = 0.0
    policy_s: float = 0.0
    act_s: float = 0.0
    total_s: float = 0.0


class Trajectory(Message, frozen=True, tag="trajectory/1"):
    """How an episode ended. Stored twice, equal byte for byte: as the chain's `done` record and on TRAJECTORIES."""

    task: Task
    attempt: int
    outcome: Outcome
    num_observations: int = 0
    num_steps: int = 0
    """Steps that were answered; there may be one more observation."""
    answer: str = ""
    environment_reward: float | None = None
    error: str = ""
    navigation_error: str = ""
    """Why the first page could not be opened."""
    final_state: FinalState | None = None
    """Of tasks with checks, unless there was no page any more."""
    worker: WorkerId = WorkerId("")
    num_unparsed: int = 0
    versions: tuple[PolicyVersion, ...] = ()
    """Oldest policy version of each step."""
    timings: Timings = Timings()
    ended_at: float = 0.0
    """Unix seconds."""

    @property
    def episode(self) -> EpisodeId:
        return self.task.episode

    @property
    def observations(self) -> tuple[RecordRef, ...]:
        return tuple(RecordRef(self.episode, self.attempt, "obs", step) for step in range(self.num_observations))

    @property
    def steps(self) -> tuple[RecordRef, ...]:
        """The answers."""
        return tuple(RecordRef(self.episode, self.attempt, "act", step) for step in range(self.num_steps))


class StageVerdict(Struct, frozen=True):
    """One stage of a judge."""

    stage: str
    passed: bool
    reasoning: str = ""
    votes: tuple[bool, ...] = ()
    """Where a question was asked several times."""
    evidence: tuple[int, ...] = ()
    """Steps whose pictures a model was shown."""

    @property
    def agreement(self) -> float:
        """Share of the votes that agree with the verdict; 1 where there was no vote."""
        return sum(vote == self.passed for vote in self.votes) / len(self.votes) if self.votes else 1.0


class RewardPart(Struct, frozen=True):
    """One named part of a reward."""

    name: str
    value: float
    """Of the whole episode, `steps` included."""
    steps: tuple[float, ...] = ()
    """What each step earned of it; what is missing was earned by the episode's end."""


class StageUsage(Struct, frozen=True):
    """What the questions of one kind took."""

    stage: str
    model: str
    num_calls: int = 0
    """Answers that were had, also those without a verdict."""
    num_failures: int = 0
    """Requests without an answer."""
    prompt_tokens: int = 0
    """The cached ones included."""
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    """In the currency of `openai_config.prices`; 0 for a model without a price."""
    seconds: float = 0.0


class Judgement(Message, frozen=True, tag="judgement/1"):
    """What a trajectory was worth. Create-only: at most one per episode and rubric."""

    episode: EpisodeId
    group: GroupId
    split: Split
    rubric: str
    """Judge name and version: part of the identity."""
    verdict: Verdict
    reward: float | None
    """None when nothing may be trained on it (`verdict` excluded or error)."""
    trajectory: Trajectory
    stages: tuple[StageVerdict, ...] = ()
    step_rewards: tuple[float, ...] = ()
    """What each step earned of the reward; empty when all of it was earned by the episode's end."""
    judge: WorkerId = WorkerId("")
    judged_s: float = 0.0
    error: str = ""
    parts: tuple[RewardPart, ...] = ()
    """Sum up to the reward, their steps to `step_rewards`."""
    usage: tuple[StageUsage, ...] = ()
    """Of model calls, by stage and model."""
    blocked: bool = False
    """The site blocked the agent: excluded, and left out of training for a while."""


class JudgeCall(Message, frozen=True, tag="call/1"):
    """One answer of a judge's model. A judge that takes a trajectory over asks nothing again that stands here."""

    episode: EpisodeId
    rubric: str
    stage: str
    question: str
    """Digest of everything that was asked, the model and the pictures included."""
    answer: int
    """0, and more for answers after one without a verdict."""
    model: str
    text: str
    accepted: bool
    """Whether it holds a verdict."""
    finish_reason: str = ""
    pictures: tuple[int, ...] = ()
    """Steps whose pictures were shown, in order."""
    num_failures: int = 0
    """Requests without an answer before this one."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    judge: WorkerId = WorkerId("")


class SiteBlock(Message, frozen=True, tag="block/1"):
    """A site is left out of training. The newest of a site counts."""

    site: str
    """Host without `www.`, or a suite's name."""
    until: float
    """Unix seconds; in the past: not any more."""
    reason: str = ""
    episode: EpisodeId = EpisodeId("")
    """That found it blocked."""
    at: float = 0.0
    """Unix seconds."""


class FileHash(Struct, frozen=True):
    path: str
    """Relative to the checkpoint's folder."""
    sha256: str
    num_bytes: int


class Checkpoint(Message, frozen=True, tag="checkpoint/1"):
    """A set of weights that policies may load."""

    run: RunName
    version: PolicyVersion
    uri: str
    """A `file://` folder that transformers and vLLM load."""
    files: tuple[FileHash, ...]
    parent: PolicyVersion | None
    trainer_step: int
    """Optimizer steps so far."""
    judged_seq: int
    """Sequence on JUDGED up to which everything was consumed for this version."""
    num_trajectories: int = 0
    """Training trajectories consumed so far; the feeder admits by it."""
    metrics: dict[str, float] = {}
    base: PolicyVersion | None = None
    """The version whose weights `files` are adapters of; None: `files` are complete."""

    @property
    def policy_files(self) -> tuple[FileHash, ...]:
        """What a policy loads: everything but what the trainer alone continues from."""
        return tuple(file for file in self.files if not file.path.startswith("trainer/"))


class WeightChunk(Message, frozen=True, tag="weights/1"):
    """One stretch of a checkpoint's file. It is the same wherever a file with this hash occurs."""

    file_sha256: str
    begin: int
    """Bytes before it in the file."""
    data: bytes
    sha256: str
    """Of `data`."""


class Role(enum.Enum):
    SERVER = "server"
    FEEDER = "feeder"
    BROWSER = "browser"
    POLICY = "policy"
    JUDGE = "judge"
    TRAINER = "trainer"
    MONITOR = "monitor"
    ARCHIVER = "archiver"


class Heartbeat(Message, frozen=True, tag="heartbeat/1"):
    """A worker is alive. Ages out by itself."""

    role: Role
    worker: WorkerId
    state: str
    """One word for a person: starting, waiting, working, loading, training, draining."""
    at: float
    """Unix seconds."""
    metrics: dict[str, float] = {}
    note: str = ""


class EpisodeCancel(Message, frozen=True, tag="cancel/1"):
    """Ask whoever runs these episodes to end them as cancelled."""

    episodes: tuple[EpisodeId, ...]
    reason: str


class DeadLetter(Message, frozen=True, tag="dead/1"):
    """An input that will not be delivered again, with the reason."""

    stream: str
    consumer: str
    seq: int
    subject: str
    reason: str
    data: bytes = b""
    worker: WorkerId = WorkerId("")


class LetterResent(Message, frozen=True, tag="resent/1"):
    """A dead letter was put back where it came from."""

    letter_seq: int
    """Sequence of the letter on ADVISORIES."""
    stream: str
    seq: int
    """Sequence of the copy."""
    at: float
    """Unix seconds."""


class Position(Message, frozen=True, tag="position/1"):
    """How far a durable reader has come. Only the process that wrote the newest one may write the next."""

    name: str
    holder: str
    """A random token of the reading process."""
    sequences: dict[str, int]
    """By stream: everything up to this sequence is handled."""
    since_s: float | None = None
    """Unix seconds at which the streams without a sequence begin."""
    at: float = 0.0
    """Unix seconds."""


AnyMessage = (
    Task
    | EpisodeStart
    | Observation
    | StepRequest
    | StepWake
    | StepPhase
    | Trajectory
    | Judgement
    | JudgeCall
    | SiteBlock
    | Checkpoint
    | WeightChunk
    | Heartbeat
    | EpisodeCancel
    | DeadLetter
    | LetterResent
    | Position
)
