"""Where a divergence from the reference counts, in the loss or in the reward, and by how much. Pure."""

from ops.config.elsewhere.row import Convert
from ops.config.elsewhere.written import Written, truth


def switch(coefficient: str) -> Convert:
    """True puts another key's number into effect."""

    def convert(value: object, written: Written) -> object:
        return (written.number(coefficient) or 0.0) if truth(value) else 0.0

    return convert
