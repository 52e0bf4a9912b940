"""Whether anything of an engine is left when the next one is opened: memory of a GPU has room for one."""

import weakref
from typing import Any

import pytest

from trainer.engine import models
from trainer.engine.deepspeed_engine import initialize
from trainer.model.loading import load_policy


def watch_earlier_engines(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by an entry whenever a policy is about to be loaded: how many parameters of earlier ones, and engines of
    DeepSpeed's, there still are."""
    earlier: list[weakref.ref[Any]] = []
    found: list[int] = []

    def loaded(*arguments: Any, **named: Any) -> Any:
        found.append(sum(each() is not None for each in earlier))
        model = load_policy(*arguments, **named)
        earlier.extend(map(weakref.ref, model.parameters()))
        return model

    def initialized(*arguments: Any) -> Any:
        engine = initialize(*arguments)
        earlier.extend((weakref.ref(engine), weakref.ref(engine.optimizer)))
        return engine

    monkeypatch.setattr(models, "load_policy", loaded)
    monkeypatch.setattr(models, "initialize", initialized)
    return found
