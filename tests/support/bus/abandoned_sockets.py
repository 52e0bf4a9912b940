"""What the client library leaves to the garbage collector where a server does not answer its connection in time."""

import pytest

abandoned_sockets = pytest.mark.filterwarnings(
    r"ignore:Exception ignored in. <(function StreamWriter|function _SelectorTransport|socket\.socket)"
    ":pytest.PytestUnraisableExceptionWarning"
)
