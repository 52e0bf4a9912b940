"""Checks whether one episode's chain is sound. Pure."""

from collections.abc import Sequence

from ops.audit.ledger import Kind, Link


def chain_fault(links: Sequence[Link]) -> str | None:
    """What is wrong with one episode's records, oldest first; None for a sound chain.

    Sound is: task, then for each attempt start, obs 0, act 0, obs 1, ... without a gap, then at most one done, last, which is
    that of the last attempt and counts its observations and steps. An act may be a refusal, which is no step and ends its
    attempt; so does the record of its traffic, of which there is one at most.
    """
    attempt, num_observations, num_steps, is_refused, is_over = 0, 0, 0, False, False
    for position, link in enumerate(links):
        own = link.attempt == attempt
        match link.kind:
            case Kind.TASK:
                sound = position == 0
            case Kind.START:
                sound = position > 0 and link.attempt == attempt + 1
                attempt, num_observations, num_steps, is_refused, is_over = link.attempt, 0, 0, False, False
            case Kind.OBSERVATION:
                sound = own and attempt > 0 and not is_over and num_observations == num_steps and link.step == num_observations
                num_observations += 1
            case Kind.ANSWER:
                sound = own and not (is_refused or is_over) and num_observations == num_steps + 1 and link.step == num_steps
                num_steps += 1
            case Kind.REFUSAL:
                sound = own and not (is_refused or is_over) and num_observations == num_steps + 1 and link.step == num_steps
                is_refused = True
            case Kind.NETWORK:
                sound = own and attempt > 0 and not is_over
                is_over = True
            case Kind.DONE:
                counted = (link.num_observations, link.num_steps) == (num_observations, num_steps)
                sound = position > 0 and position == len(links) - 1 and own and counted
            case None:
                return f"record {link.seq} is not what its subject says"
        if not sound:
            return f"record {link.seq} ({link.kind.value}) does not follow the one before it"
    return None
