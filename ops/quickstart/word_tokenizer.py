"""Builds a tokenizer of whole words: what a task says and what stands on a page become the same tokens, so that one can be
found by the other.

Invariants: every string can be encoded, in pairs of letters and digits or byte by byte where it has no word; decoding what was
encoded gives the string; a string without a word is the same tokens wherever it stands.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

NUM_NUMBERS = 130
"""Whole numbers from 0 on that are one token."""
_SIGN = "[A-Za-z0-9]"
"""What words, and strings that have none, consist of."""
_WORD = re.compile(f"{_SIGN}+")


def word_tokenizer(
    texts: Sequence[str], *, words: Sequence[str], phrases: Sequence[str], special_tokens: Sequence[str], min_texts: int = 2
) -> Tokenizer:
    """One token a word, with and without a space before it, for each word that at least `min_texts` of the texts hold.

    Args:
        texts: what the words are taken from.
        words: that are there in any case.
        phrases: strings that are one token each wherever they occur; where one is the beginning of another, the longer wins.
        special_tokens: control tokens, in the order of their ids.
        min_texts: rarer words are read two signs at a time, as any other string is.
    """
    words = list(dict.fromkeys([*words, *frequent_words(texts, min_texts), *map(str, range(NUM_NUMBERS))]))
    signs = string.ascii_letters + string.digits
    pairs = list(map("".join, product(signs, signs)))
    spaced = (form for word in words for form in (word, f"Ġ{word}"))
    entries = [*special_tokens, *sorted(pre_tokenizers.ByteLevel.alphabet()), *pairs, *spaced]
    vocabulary = {entry: index for index, entry in enumerate(dict.fromkeys(entries))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    whole = f" ?(?<!{_SIGN})(?:{'|'.join(map(re.escape, words))})(?!{_SIGN})"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(f"{whole}|{_SIGN}{{1,2}}|[^A-Za-z0-9]"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special_tokens])
    tokenizer.add_tokens([AddedToken(phrase, special=False, normalized=False) for phrase in dict.fromkeys(phrases)])
    return tokenizer


def frequent_words(texts: Iterable[str], min_texts: int) -> list[str]:
    """Sorted, so that equal texts in another order give the same tokenizer."""
    counts = Counter(word for text in texts for word in set(_WORD.findall(text)))
    return sorted(word for word, count in counts.items() if count >= min_texts)
