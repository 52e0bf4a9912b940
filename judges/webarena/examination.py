"""Runs in a process of its own, where the package webarena-verified is installed: a question a line in, an answer a line out.

It imports nothing of Millrace, so that any environment with that package can run it. A question that takes too much
processor time ends the process: the package evaluates arithmetic that stands in an agent's answer, and cannot be interrupted
there. A machine that is slow says nothing about an answer.
"""

import importlib
import importlib.metadata
import json
import logging
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO

_MEMORY = 4 * 2**30


def _result(asked: dict[str, Any]) -> list[dict[str, Any]]:
    from webarena_verified.api.internal.evaluator import WebArenaVerifiedEvaluator
    from webarena_verified.types.config import EnvironmentConfig, WebArenaVerifiedConfig
    from webarena_verified.types.eval import TaskEvalContext
    from webarena_verified.types.task import WebArenaSite, WebArenaVerifiedTask
    from webarena_verified.types.tracing import NetworkTrace

    entries = asked["entries"]
    trace = (
        NetworkTrace.from_content(entries)
        if entries
        else NetworkTrace.model_construct(is_playwright=False, src_file=Path("none"), events=())
    )
    evaluation = asked["evaluation"]
    task = WebArenaVerifiedTask.model_validate(
        {
            "sites": list(evaluation["sites"]),
            "task_id": evaluation["task_id"],
            "intent_template_id": evaluation["intent_template_id"],
            "start_urls": list(evaluation["sites"].values()),
            "intent": asked["instruction"],
            "eval": evaluation["eval"],
            "intent_template": asked["instruction"],
            "instantiation_dict": {},
            "revision": evaluation["revision"],
        }
    )
    environments = {WebArenaSite(site): EnvironmentConfig(urls=[url]) for site, url in evaluation["sites"].items()}
    config = WebArenaVerifiedConfig(environments=environments)
    context = TaskEvalContext(task=task, agent_response_raw=asked["response"], network_trace=trace, config=config)
    found = WebArenaVerifiedEvaluator(config=config, reader=None).evaluate_task(context=context)
    if found.error_msg:
        raise ValueError(found.error_msg)
    return [_told(each) for each in found.evaluators_results]


def _told(found: Any) -> dict[str, Any]:
    said = [found.error_msg or ""]
    for each in found.assertions or ():
        said += [f"{each.assertion_name}: {' '.join(each.assertion_msgs or ())}{each.error_msg or ''}"]
    return {"evaluator": found.evaluator_name, "status": str(found.status), "said": "; ".join(filter(None, said))[:2000]}


def _answer(line: bytes) -> dict[str, Any]:
    try:
        return {"found": _result(json.loads(line))}
    except Exception as error:  # noqa: BLE001 - whatever the package raises is its answer
        return {"error": f"{type(error).__name__}: {error}"[:2000]}


def main() -> None:
    # What the package prints must not stand among the answers.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    patience_s = float(sys.argv[1])
    importlib.import_module("webarena_verified.api.internal.evaluator")
    _say(out, {"version": importlib.metadata.version("webarena_verified")})
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_PROF, patience_s)
        answer = _answer(line)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _say(out, answer)


def _say(out: BinaryIO, answer: dict[str, Any]) -> None:
    out.write(json.dumps(answer).encode() + b"\n")
    out.flush()


if __name__ == "__main__":
    main()
