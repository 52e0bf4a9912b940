"""Any code points at all, those that do harm more often than chance would have them."""

import hypothesis.strategies as st

HARMFUL = (
    "\x00\x07\x08\x0b\x0c\r\n\t\x1b\x1f\x7f\x85\x9b\x9d\xad\u0301\u034f\u061c\u200b\u200d\u202a\u202e\u2028\u2029\u2066\u2069"
    "\u3164\ud800\udbff\udc00\udfff\ufe0f\ufeff\ufffd\uffff\U0001f600\U0001f3ff\U000e0041\U0010ffff[]<>&\"'\\|"
)
any_text = st.lists(st.text(st.characters(), max_size=8) | st.text(st.sampled_from(HARMFUL), min_size=1, max_size=8)).map(
    "".join
)
OBEYED = frozenset(
    {chr(code) for code in (*range(32), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
    | set("\u061c\u200b\u200e\u200f\u2028\u2029\ufeff\U000e0041")
)
"""What moves a cursor, begins an escape sequence, turns text round, or stands where nobody sees it."""
