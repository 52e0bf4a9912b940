"""What processes say into a file."""

from pathlib import Path

import pytest

from bus import output_file
from bus.output_file import last_lines, open_output


def test_what_is_too_long_at_a_start_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_file, "_LIMIT_BYTES", 8)
    for line in (b"first\n", b"second\n", b"third\n", b"fourth\n"):
        with open_output(tmp_path / "logs" / "x.out") as output:
            output.write(line)
    assert (tmp_path / "logs" / "x.out").read_bytes() == b"third\nfourth\n"
    assert (tmp_path / "logs" / "x.out.1").read_bytes() == b"\nsecond\n", "the end of it, up to the bound"


def test_of_a_long_file_the_end_alone_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.out"
    assert last_lines(path) == []
    path.write_bytes(b"long ago\n" + b"x" * 100_000 + b"\n\n  lately \xff\n\nnow\n\n")
    assert last_lines(path)[1:] == ["lately \ufffd", "now"]
