"""The error tree. Each class says which boundary failed and what becomes of the input that was being handled.

    MillraceError
    ├── ConfigurationError      a person's mistake: says what is wrong, where, and what to write instead
    │   └── TaskFileError       a line of a task file
    ├── BusError
    │   ├── BusUnavailable      no server, no JetStream, a deadline passed           (retry)
    │   ├── ChainConflict       somebody else appended first: stop, the chain is theirs (leave)
    │   ├── StreamFull          a limit or the storage leaves no room for the message (retry)
    │   ├── MessageTooLarge     larger than the server or the stream takes            (reject)
    │   ├── NotPermitted        the server refuses this to the role's key             (fatal)
    │   ├── RecordGone          a record that was named has aged out                  (reject)
    │   ├── PositionTaken       another reader goes on under this durable name        (fatal)
    │   └── MessageCorrupt      bytes that no reader of this version understands      (reject)
    ├── BrowserError
    │   ├── PageFailed          a page, renderer or context died or did not answer    (retry)
    │   └── BrowserLost         the whole browser is gone                             (retry)
    ├── PolicyError
    │   ├── PromptTooLong       not even the current round fits                       (reject)
    │   ├── PromptRefused       the engine, oracle or endpoint never takes it         (reject)
    │   ├── WeightsUnavailable  an announced version cannot be had from here          (retry)
    │   └── EngineFailed        the engine died: the worker must end and be restarted (fatal)
    ├── JudgeError              a judge failed: never a reward of zero                (retry)
    │   └── NoVerdict           none can be had, every retry included                 (retry)
    ├── TrainerError
    │   ├── UnusableRecord      a record that nothing can be made of                  (reject)
    │   ├── CheckpointCorrupt   a file does not match its hash                        (fatal)
    │   ├── MismatchExceeded    sampler and trainer disagree on log-probabilities     (fatal)
    │   └── TrainingCollapsed   what is trained became far worse, again and again     (fatal)
    ├── ArchiveError
    │   ├── ArchiveDamaged      a part or screenshot does not match its hash             (fatal)
    │   └── ImportConflict      the run holds something else under the same identity  (fatal)
    ├── Unforeseen              what is no MillraceError, met at one item             (retry)
    │   ├── Hopeless            it was met at every try                               (reject)
    │   └── WorkerFailing       item after item meets the same one                    (fatal)
    └── ToldToLeave             a worker that leaves cannot finish what it holds      (fatal)

`Disposition` is read by `bus.settlement` alone; handlers raise and never acknowledge.
"""

import enum

from schemas.text import valid

_LONGEST = 8_000


class Disposition(enum.Enum):
    """What becomes of the input whose handling failed."""

    RETRY = "retry"
    """Deliver again after a delay."""
    REJECT = "reject"
    """Never deliver again: to the dead letters, with the reason."""
    LEAVE = "leave"
    """Do nothing: somebody else owns the work and settles it; it comes again after the ack wait, should he die."""
    FATAL = "fatal"
    """Hand the input back at once and end the worker."""


class MillraceError(Exception):
    """The root; catch it at the outermost boundary only. Whatever words it was made of, as text it is fit for a record."""

    disposition = Disposition.RETRY

    def __str__(self) -> str:
        return valid(super().__str__(), _LONGEST)


class ConfigurationError(MillraceError):
    disposition = Disposition.FATAL


class TaskFileError(ConfigurationError):
    """A line of a task file; the message names file, line and field."""


class BusError(MillraceError):
    """The bus could not do what was asked."""


class BusUnavailable(BusError):
    """No server, no JetStream, or no answer within the deadline."""


class ChainConflict(BusError):
    """The chain's last record is not the one this worker expected: another owner has moved on."""

    disposition = Disposition.LEAVE


class StreamFull(BusError):
    """The stream refused a message because a limit is reached or the server's storage is used up."""


class MessageTooLarge(BusError):
    """No server of this configuration takes a message of this size, however often it is sent."""

    disposition = Disposition.REJECT


class NotPermitted(BusError):
    """The server refuses this subject to the key that was presented, or the key itself."""

    disposition = Disposition.FATAL


class RecordGone(BusError):
    """A record that a message names is no longer kept."""

    disposition = Disposition.REJECT


class PositionTaken(BusError):
    """Another process reads under the same durable name."""

    disposition = Disposition.FATAL


class MessageCorrupt(BusError):
    """Bytes that are not a message, one of a newer major version, or one whose content cannot be."""

    disposition = Disposition.REJECT

    def __init__(self, reason: str, *, subject: str = "", seq: int = 0) -> None:
        super().__init__(reason)
        self.subject = subject
        """Under which it is stored; empty: nowhere."""
        self.seq = seq


class BrowserError(MillraceError):
    """Something between the browser worker and a page failed."""


class PageFailed(BrowserError):
    """A page, renderer or context crashed, or a call outlasted its deadline."""


class BrowserLost(BrowserError):
    """The browser process is gone or no longer answers."""


class PolicyError(MillraceError):
    """The policy could not answer an observation."""


class PromptTooLong(PolicyError):
    """The model cannot read the current observation and answer it, even without any earlier round."""

    disposition = Disposition.REJECT


class PromptRefused(PolicyError):
    """The engine, the oracle, or the endpoint or its content filter, does not take the current observation, whoever asks."""

    disposition = Disposition.REJECT


class WeightsUnavailable(PolicyError):
    """Announced weights are neither on this machine's disks nor, in time, on the bus."""


class EngineFailed(PolicyError):
    """The inference engine died; nothing this worker holds can be answered by it."""

    disposition = Disposition.FATAL


class JudgeError(MillraceError):
    """A judge failed; asking it again may help."""


class NoVerdict(JudgeError):
    """No verdict can be had: the judge has tried everything that may help."""


class TrainerError(MillraceError):
    """Training cannot go on as asked."""

    disposition = Disposition.FATAL


class UnusableRecord(TrainerError):
    """A record is a message, and no sample can be made of what it says."""

    disposition = Disposition.REJECT


class CheckpointCorrupt(TrainerError):
    """A checkpoint's file is missing or does not match its recorded hash."""


class MismatchExceeded(TrainerError):
    """The sampler's and the trainer's log-probabilities of the same tokens differ by more than the bound."""


class TrainingCollapsed(TrainerError):
    """What is trained became far worse than it was, more often than training may return to a good version."""


class ArchiveError(MillraceError):
    """An archive cannot be written or read as asked."""

    disposition = Disposition.FATAL


class ArchiveDamaged(ArchiveError):
    """A file of an archive is missing, cannot be read, or does not match its recorded hash."""


class ImportConflict(ArchiveError):
    """The target run holds another record under an identity that is to be imported."""


class Unforeseen(MillraceError):
    """A defect of a worker's code, or of a judge, suite or sampler of the user's own, was met; `bus.bulkhead` names it."""

    def __init__(self, message: str, *, num_tried: int = 1) -> None:
        """`num_tried`: how often its item has met what nobody foresaw."""
        super().__init__(message)
        self.num_tried = num_tried


class Hopeless(Unforeseen):
    """So many tries at an item met what nobody foresaw that it is not tried again."""

    disposition = Disposition.REJECT


class WorkerFailing(Unforeseen):
    """The same is met at item after item: it seems to be the worker rather than what it is given."""

    disposition = Disposition.FATAL


class ToldToLeave(MillraceError):
    """A worker that was told to leave leaves an input to others: what it waits for does not come while it is there."""

    disposition = Disposition.FATAL
