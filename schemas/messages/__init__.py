"""Every message on the bus: frozen, tagged structs, encoded as MessagePack.

Evolution follows msgspec's rules: fields are only added, each with a default; a field is never renamed, retyped or reused;
a change that an old reader could misread gets a new tag (`name/2`). `tests/fixtures/messages` keeps encoded examples of
every released version, and a test reads them all.
"""

from schemas.messages.delivery import DeadLetter, Fault, LetterResent, Position
from schemas.messages.episode import Blockage, EpisodeCancel, EpisodeStart, FinalState, Outcome, Timings, Trajectory
from schemas.messages.feeding import (
    EvaluationRound,
    FedEpisode,
    FeederMemory,
    GroupResult,
    OpenGroup,
    RefillMemory,
    SchedulePlace,
    TaskResults,
)
from schemas.messages.judgement import (
    AskedQuestion,
    JudgeCall,
    Judgement,
    JudgeProtocol,
    JudgeSpending,
    RewardPart,
    SiteBlock,
    StageUsage,
    StageVerdict,
    Verdict,
)
from schemas.messages.network import NetworkRecord, NetworkSummary
from schemas.messages.step import (
    Action,
    ActionEffect,
    ActionKind,
    ActionResult,
    BrowserTab,
    Element,
    Observation,
    Screenshot,
    StepHeld,
    StepPhase,
    StepRefusal,
    StepRequest,
    StepWake,
    TokenUsage,
    VersionSpan,
)
from schemas.messages.structs import Message, RecordRef, Struct
from schemas.messages.task import Check, CheckKind, CheckMatch, Fact, Split, Task
from schemas.messages.turn import SiteTurn
from schemas.messages.version import Checkpoint, FileHash, ServedVersion, ServingState, WeightChunk, WeightDifference
from schemas.messages.worker import Heartbeat, JobNode, JobState, Role

__all__ = [
    "Action",
    "ActionEffect",
    "ActionKind",
    "ActionResult",
    "AnyMessage",
    "AskedQuestion",
    "Blockage",
    "BrowserTab",
    "Check",
    "CheckKind",
    "CheckMatch",
    "Checkpoint",
    "DeadLetter",
    "Element",
    "EpisodeCancel",
    "EpisodeStart",
    "EvaluationRound",
    "Fact",
    "Fault",
    "FedEpisode",
    "FeederMemory",
    "FileHash",
    "FinalState",
    "GroupResult",
    "Heartbeat",
    "JobNode",
    "JobState",
    "JudgeCall",
    "JudgeProtocol",
    "JudgeSpending",
    "Judgement",
    "LetterResent",
    "Message",
    "NetworkRecord",
    "NetworkSummary",
    "Observation",
    "OpenGroup",
    "Outcome",
    "Position",
    "RecordRef",
    "RefillMemory",
    "RewardPart",
    "Role",
    "SchedulePlace",
    "Screenshot",
    "ServedVersion",
    "ServingState",
    "SiteBlock",
    "SiteTurn",
    "Split",
    "StageUsage",
    "StageVerdict",
    "StepHeld",
    "StepPhase",
    "StepRefusal",
    "StepRequest",
    "StepWake",
    "Struct",
    "Task",
    "TaskResults",
    "Timings",
    "TokenUsage",
    "Trajectory",
    "Verdict",
    "VersionSpan",
    "WeightChunk",
    "WeightDifference",
]

AnyMessage = (
    Task
    | EpisodeStart
    | Observation
    | StepRequest
    | StepRefusal
    | StepWake
    | StepHeld
    | StepPhase
    | Trajectory
    | NetworkRecord
    | Judgement
    | JudgeCall
    | JudgeSpending
    | SiteBlock
    | SiteTurn
    | Checkpoint
    | WeightChunk
    | ServedVersion
    | Heartbeat
    | JobNode
    | EpisodeCancel
    | DeadLetter
    | LetterResent
    | Fault
    | Position
    | FeederMemory
    | TaskResults
)
