"""The committed protocols of evaluation: how the field's benchmarks are measured. Loads at once."""

from pathlib import Path

PROTOCOLS = Path(__file__).parent / "protocols"


def is_protocol(word: str) -> bool:
    """Whether a word of the command line names one: a committed one, or a file."""
    return word.endswith((".yaml", ".yml")) or word in protocol_names()


def protocol_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in PROTOCOLS.glob("*.yaml")))
