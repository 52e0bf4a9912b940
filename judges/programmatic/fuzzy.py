"""Texts that say the same in another order or spelling; what may turn a meaning around must be equal.

Alike are two texts whose words, in any order, are nearly equal letter by letter, as long as both hold the same numbers, words
with digits, negations and currency, and no word stands for another. It knows no synonyms, and what depends on the order (from
A to B) is lost with it.
"""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from types import ModuleType

from judges.programmatic.numbers import numbers_of, without_numbers
from schemas.errors import ConfigurationError

_MIN_RATIO = 90.0
"""Of all words, by rapidfuzz's token_sort_ratio: 0 to 100."""
_MIN_WORD_RATIO = 75.0
"""Of a word and what is written for it: `grey` and `gray`, but not `Monday` and `Sunday`."""
_WORD = re.compile(r"\w+")
_COUNTED = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
"""Without `one`, which is more often no number."""
_NUMBER_WORDS = {word: float(number) for number, word in enumerate(_COUNTED, start=2)}
_NEGATION = "not"
_NEGATIONS = frozenset({"no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without"})
_NEGATING_SYLLABLES = ("un", "in", "im", "il", "ir", "dis", "non")
_CONTRACTIONS = ((re.compile(r"\bcan(?:['’]t|not)\b"), "can not"), (re.compile(r"n['’]t\b"), " not"))


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a text says, apart from order, case, punctuation and the way that numbers are written."""

    words: tuple[str, ...]
    """Sorted; without what is `exact`."""
    exact: Counter[str | float]
    """Numbers, words with a digit in them, and negations."""
    currencies: frozenset[str]


def alike(value: str, expected: str) -> bool:
    """Whether two texts say the same; a text without a word or number says nothing.

    Raises:
        ConfigurationError: rapidfuzz is not installed.
    """
    given, wanted = _read(value), _read(expected)
    differs = given.currencies and wanted.currencies and given.currencies != wanted.currencies
    if given.exact != wanted.exact or differs:
        return False
    if given.words == wanted.words:
        return bool(wanted.words or wanted.exact)
    return _nearly_equal(given.words, wanted.words)


def _read(text: str) -> _Reading:
    exact: Counter[str | float] = Counter(numbers_of(text))
    rest = without_numbers(text).casefold()
    for contraction, written_out in _CONTRACTIONS:
        rest = contraction.sub(written_out, rest)
    words = []
    for word in _WORD.findall(rest):
        if word in _NUMBER_WORDS:
            exact[_NUMBER_WORDS[word]] += 1
        elif word in _NEGATIONS:
            exact[_NEGATION] += 1
        elif any(letter.isdigit() for letter in word):
            exact[word] += 1
        else:
            words.append(word)
    currencies = frozenset(letter for letter in rest if unicodedata.category(letter) == "Sc")
    return _Reading(tuple(sorted(words)), exact, currencies)


def _nearly_equal(given: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    fuzz = _rapidfuzz()
    if fuzz.token_sort_ratio(" ".join(given), " ".join(wanted), score_cutoff=_MIN_RATIO) < _MIN_RATIO:
        return False
    fewer, more = sorted((Counter(given) - Counter(wanted), Counter(wanted) - Counter(given)), key=Counter.total)
    return all(any(_respelled(word, other, fuzz.ratio(word, other)) for other in more) for word in fewer)


def _respelled(word: str, other: str, ratio: float) -> bool:
    """Whether two words are one, written in two ways: neither another word, nor the same one negated."""
    negated = any(
        syllable + short == long for short, long in ((word, other), (other, word)) for syllable in _NEGATING_SYLLABLES
    )
    return ratio >= _MIN_WORD_RATIO and not negated


def _rapidfuzz() -> ModuleType:
    try:
        from rapidfuzz import fuzz
    except ImportError as error:
        raise ConfigurationError(
            "`fuzzy` needs rapidfuzz: pip install 'millrace[judge]', or in the clone pip install -e '.[judge]'"
        ) from error
    return fuzz
