"""Regular expressions of tasks, searched in what pages and policies wrote: never for longer than a second.

Python's own `re` may backtrack for ever in a text that was chosen for it; `regex` reads the same patterns and keeps a
time limit.
"""

import regex

from schemas.errors import JudgeError

_LIMIT_S = 1.0


def found(pattern: str, text: str) -> bool:
    """Whether the pattern is found anywhere in the text, in any case.

    Raises:
        JudgeError: it is no pattern, or the search took longer than a second.
    """
    try:
        return regex.search(pattern, text, regex.IGNORECASE, timeout=_LIMIT_S) is not None
    except regex.error as error:
        raise JudgeError(f'a check expects the pattern "{pattern}", which is none ({error}): correct the task') from error
    except TimeoutError as error:
        raise JudgeError(
            f'searching for the pattern "{pattern}" in {len(text):,} characters took longer than {_LIMIT_S:g} s: '
            "correct the task (no repetition inside a repetition, as in (a+)+)"
        ) from error
