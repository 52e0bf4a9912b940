"""Counts what a task file holds."""

from collections import Counter
from dataclasses import dataclass, field

from schemas.env_config import difficulty_class
from schemas.site import site_of
from trainer.feeding.task_files import TaskSpec


@dataclass
class Summary:
    """Grows by one task at a time."""

    num_tasks: int = 0
    num_facts: int = 0
    """Tasks with facts; so with the next two."""
    num_answers: int = 0
    num_checks: int = 0
    sites: Counter[str] = field(default_factory=Counter)
    domains: Counter[str] = field(default_factory=Counter)
    difficulties: Counter[str] = field(default_factory=Counter)
    splits: Counter[str] = field(default_factory=Counter)
    distributions: Counter[str] = field(default_factory=Counter)

    def add(self, spec: TaskSpec) -> None:
        self.num_tasks += 1
        self.num_facts += bool(spec.facts)
        self.num_answers += has_answer(spec)
        self.num_checks += bool(spec.checks)
        self.sites[site_of(spec.website)] += 1
        self.domains[spec.domain] += 1
        self.difficulties[difficulty_class(spec.difficulty)] += 1
        self.splits[spec.split or "not said"] += 1
        self.distributions[spec.distribution or "not said"] += 1


def has_answer(spec: TaskSpec) -> bool:
    return bool((spec.reference_answer or "").strip())
