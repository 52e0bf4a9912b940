"""Contains errors that nobody foresaw at one item of a monitor, so that the watch over all others goes on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bus.fault import unforeseen

PassOver = Callable[[Exception, str], None]
"""Hears what nobody foresaw, and the item that met it."""


@contextmanager
def passing_over(pass_over: PassOver, item: str) -> Iterator[None]:
    """What was foreseen goes on."""
    try:
        yield
    except Exception as error:
        surprise = unforeseen(error)
        if surprise is None:
            raise
        pass_over(surprise, item)
