"""Alerts about what a run makes: mismatch, parse rate, judgements without verdict, dead letters, unforeseen errors."""

import math
from collections import Counter
from collections.abc import Iterator

from ops.monitor.alerts.alert import Condition, Key
from ops.monitor.alerts.look import Look, critical, warning
from ops.monitor.rules import alert

_MISMATCH, _PARSE_RATE, _JUDGE_ERRORS = Key("mismatch_high"), Key("parse_rate_low"), Key("judge_errors")


@alert("quality")
def conditions(look: Look) -> Iterator[Condition]:
    yield from _mismatch(look)
    yield from _parse_rate(look)
    yield from _judge_errors(look)
    yield from _letters(look)
    yield from _surprises(look)
    yield from _skipped(look)


def _mismatch(look: Look) -> Iterator[Condition]:
    trainer, share = look.config.trainer_config, look.bounds.mismatch_share
    gates = {"mismatch_k3": trainer.max_mismatch_k3, "mismatch_far": trainer.max_mismatch_far}
    found = {name: value / gates[name] for name, value in look.state.run.gated.items()}
    if not found:
        return
    name = max(found, key=lambda each: math.inf if math.isnan(found[each]) else found[each])
    if look.is_above(found[name], share, _MISMATCH):
        yield (warning if found[name] <= 1 else critical)(
            _MISMATCH,
            f"sampler and trainer do not agree: {name} is {look.state.run.gated[name]:.4f}; the run stops at {gates[name]:g} "
            f"(trainer_config.max_{name})",
            "check that policies load the announced weights and that both sides use the same model, tokenizer and processor",
        )


def _parse_rate(look: Look) -> Iterator[Condition]:
    rate, bound = look.state.judging.parse_rate, look.bounds.least_parse_rate
    if rate is not None and look.state.judging.window >= look.bounds.least_window and look.is_below(rate, bound, _PARSE_RATE):
        yield warning(
            _PARSE_RATE,
            f"{rate:.1%} of the latest steps could be parsed; {bound:.0%} are expected (monitor_config.least_parse_rate)",
            "read answers: millrace watch steps; a cut-off answer needs more policy_config.max_new_tokens",
        )


def _judge_errors(look: Look) -> Iterator[Condition]:
    judging, bound = look.state.judging, look.bounds.most_judge_errors
    share = judging.error_share
    if share is not None and judging.window >= look.bounds.least_window and look.is_above(share, bound, _JUDGE_ERRORS):
        yield warning(
            _JUDGE_ERRORS,
            f"{share:.1%} of the latest {judging.window} judgements came to no verdict",
            "read the reasons: millrace watch judgements --verdict error; then judge those again: millrace rejudge",
        )


def _letters(look: Look) -> Iterator[Condition]:
    for stream, count in Counter(look.state.letters.values()).items():
        yield warning(
            Key("dead_letters", stream),
            f"messages of {stream} that no worker could handle: {count:,}",
            "read them: millrace dead-letters list; put them back when the cause is gone: millrace dead-letters resend --all",
        )


def _surprises(look: Look) -> Iterator[Condition]:
    for worker, met in look.state.surprises.items():
        times = "" if met.number == 1 else f"; it is the latest of {met.number:,}"
        yield warning(
            Key("unexpected_error", worker),
            f"{worker} met what nobody foresaw at {met.item}: {met.error}{times}",
            "its log has the traceback (unexpected_error): mend the judge, suite or sampler that it names, or report it",
        )
    if look.state.num_passed_over:
        yield warning(
            Key("unexpected_error", "monitor"),
            f"this monitor passed over records that it could not take in: {look.state.num_passed_over:,}",
            "its log has the traceback (unexpected_error): report it",
        )


def _skipped(look: Look) -> Iterator[Condition]:
    for worker in look.state.workers.in_order():
        if worker.skipped:
            yield warning(
                Key("records_skipped", worker.name),
                f"{worker.name} left out records that it could not use: {worker.metrics.get('records_skipped', 1):,.0f}; "
                f"the last one: {worker.skipped}",
                "find out whose key wrote it: nothing that this version writes is left out; its log names every one "
                "(record_skipped)",
            )
