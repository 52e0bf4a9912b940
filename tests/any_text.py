"""Any code points at all, those that do harm more often than chance would have them."""

import hypothesis.strategies as st

HARMFUL = (
    "\x00\x07\x08\x0b\x0c\r\n\t\x1b\x1f\x7f\x85\x9b\x9d\xad\u0301\u034f\u061c\u200b\u200d\u202a\u202e\u2028\u2029\u2066\u2069"
    "\u3164\ud800\udbff\udc00\udfff\ufe0f\ufeff\ufffd\uffff\U0001f600\U0001f3ff\U000e0041\U0010ffff[]<>&\"'\\|"
)
any_text = st.lists(st.text(st.characters(), max_size=8) | st.text(st.sampled_from(HARMFUL), min_size=1, max_size=8)).map(
    "".join
)
