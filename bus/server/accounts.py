"""The accounts of one run: one that has its streams, and one per role, which reaches no more of it than its grant says.

A server answers on whatever reply subject a request names, in its own name and unchecked. Were all roles in one account, any
of them could so have an answer stored on a subject that it may not publish. A role's account imports what the role may
publish and hear, and nothing else: answers end there. What a role publishes goes to the run's account, to be stored, and
to the accounts of the roles that hear it: it would not go on from the one to the others.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bus.access import Access, Grant, covers, grants
from bus.address import inbox_of
from bus.server.keys import KeyRing
from bus.subjects import Subjects
from schemas.bus_config import BusConfig
from schemas.ids import RunName

_RESPONSES = '{ max: 1, expires: "1m" }'
_IN_PARTS = {"$JS.API.DIRECT.GET.": "10s", "$JS.API.CONSUMER.MSG.NEXT.": "40s", "$SRV.": "10s"}
"""Requests that are answered by several messages, and for how long: the server cannot know which is the last, and keeps some
2.5 KB for each request until then (two minutes if it is not told; a pull of ours expires after half a minute)."""


@dataclass(frozen=True, slots=True)
class User:
    """One role's key, and what it may do."""

    role: Access
    public_key: str
    grant: Grant

    @property
    def asked_on(self) -> tuple[str, ...]:
        return self.grant.answers

    @property
    def tells(self) -> tuple[str, ...]:
        """What it publishes to its fellows, rather than asks of the server or of services."""
        return tuple(subject for subject in self.grant.publish if not subject.startswith("$"))

    @property
    def hears(self) -> tuple[str, ...]:
        """What has to come from the run's account, each once."""
        inbox = f"{inbox_of(self.role)}.>"
        heard = [subject for subject in self.grant.subscribe if subject != inbox and subject not in self.asked_on]
        return tuple(one for one in heard if not any(other != one and covers(other, one) for other in heard))

    def hears_of(self, told: str) -> bool:
        return any(covers(subject, told) for subject in self.hears)


@dataclass(frozen=True, slots=True)
class RunAccess:
    """The administrator and the roles of one run, who see nothing of any other."""

    run: RunName
    admin: User
    roles: tuple[User, ...]

    def account(self, role: Access) -> str:
        """No run can have such a name."""
        return f"{self.run}/{role}"


def access_of(config: BusConfig, keys: KeyRing) -> RunAccess:
    """Every role of a run with its key and what it may do."""
    subjects = Subjects(config.run, config.num_shards)
    admin, *roles = (
        User(role, keys.public_key(config.run, role), grants(subjects, config, role, config.rubrics)) for role in Access
    )
    return RunAccess(config.run, admin, tuple(roles))


def accounts_text(run: RunAccess) -> Iterator[str]:
    """The run's own account, then one per role."""
    answerers: dict[str, list[str]] = {}
    for user in run.roles:
        for subject in user.asked_on:
            answerers.setdefault(subject, []).append(run.account(user.role))
    services = dict.fromkeys(subject for user in run.roles for subject in user.grant.publish if subject not in answerers)
    streams = dict.fromkeys(subject for user in run.roles for subject in user.hears)
    yield f"  {quoted(run.run)} {{"
    yield "    jetstream: enabled"
    yield f"    users: [ {{ nkey: {run.admin.public_key} }} ]"
    yield "    exports: ["
    yield from (_service_export(subject) for subject in services)
    yield from (f"      {{ stream: {quoted(subject)} }}" for subject in streams)
    yield "    ]"
    yield "    imports: ["
    yield from (_import("service", account, subject) for subject, accounts in answerers.items() for account in accounts)
    yield "    ]"
    yield "  }"
    for user in run.roles:
        yield from _role_account(run, user, answerers)


def _role_account(run: RunAccess, user: User, answerers: dict[str, list[str]]) -> Iterator[str]:
    yield f"  {quoted(run.account(user.role))} {{"
    yield f"    users: [ {{ nkey: {user.public_key}, permissions: {{"
    yield f"      publish: {{ allow: {listed(user.grant.publish)} }}"
    yield f"      subscribe: {{ allow: {listed(user.grant.subscribe)} }}"
    if user.asked_on:
        yield f"      allow_responses: {_RESPONSES}"
    yield "    } } ]"
    yield "    exports: ["
    yield from (_service_export(subject) for subject in user.asked_on)
    yield from (f"      {{ stream: {quoted(subject)} }}" for subject in user.tells)
    yield "    ]"
    yield "    imports: ["
    for subject in user.grant.publish:
        for account in answerers.get(subject, [run.run]):
            yield _import("service", account, subject)
    for subject in user.hears:
        yield _import("stream", run.run, subject)
    # Of two that write and hear the same neither is told by the other (the server refuses the cycle): their tails look anyhow.
    for other in run.roles:
        for told in other.tells:
            if user.hears_of(told) and not (other.hears_of(told) and told in user.tells):
                yield _import("stream", run.account(other.role), told)
    yield "    ]"
    yield "  }"


def _service_export(subject: str) -> str:
    lasting = next((time for begin, time in _IN_PARTS.items() if subject.startswith(begin)), None)
    parts = "" if lasting is None else f", response_type: stream, response_threshold: {quoted(lasting)}"
    return f"      {{ service: {quoted(subject)}{parts} }}"


def _import(kind: str, account: str, subject: str) -> str:
    return f"      {{ {kind}: {{ account: {quoted(account)}, subject: {quoted(subject)} }} }}"


def listed(values: Iterable[str]) -> str:
    return f"[{', '.join(map(quoted, values))}]"


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
