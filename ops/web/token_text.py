"""The text of sampled tokens, by the tokenizer of the run's model where that is on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import structlog

from ops.run.base_models import folder_here

_log = structlog.get_logger()
_UNFINISHED = "\ufffd"


@dataclass(frozen=True)
class TokenTexts:
    """Without a tokenizer, tokens have no text."""

    tokenizer: Any = None
    """`tokenizers.Tokenizer`."""

    def of(self, tokens: Sequence[int]) -> tuple[str, ...]:
        """A text per token, control tokens by name; a character of several tokens stands with the last. Empty: no tokenizer.

        Together they are the decoded text, as far as the vocabulary knows the tokens.
        """
        if self.tokenizer is None:
            return ()
        texts: list[str] = []
        pending: list[int] = []
        for token in tokens:
            pending.append(token)
            text: str = self.tokenizer.decode(pending, skip_special_tokens=False)
            if text.endswith(_UNFINISHED) and len(pending) < 4:
                texts.append("")
                continue
            texts.append(text)
            pending.clear()
        if pending:
            texts[-1] = self.tokenizer.decode(pending, skip_special_tokens=False)
        return tuple(texts)


def token_texts(model: str) -> TokenTexts:
    """By `tokenizer.json` in a model's folder. One that is missing or cannot be read leaves tokens as numbers."""
    if not model or find_spec("tokenizers") is None:
        return TokenTexts()
    folder = folder_here(model)
    if folder is None or not (path := folder / "tokenizer.json").is_file():
        return TokenTexts()
    from tokenizers import Tokenizer

    try:
        return TokenTexts(Tokenizer.from_file(str(path)))
    except Exception as error:  # noqa: BLE001 - the package raises plain Exception for a file that it cannot read
        _log.warning("tokenizer_unreadable", path=str(path), reason=str(error))
        return TokenTexts()
