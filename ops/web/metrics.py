"""A run's figures for Prometheus at /metrics, behind the same door as every page."""

from collections.abc import Sequence
from importlib.util import find_spec

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ops.web.access import METRICS
from ops.web.live import Watched


def metrics_routes(watch: Watched, run: str) -> Sequence[Route]:
    """None where the package for it is not installed."""
    if find_spec("prometheus_client") is None:
        return ()
    from ops.monitor.metrics import Exposition

    exposition = Exposition(run, lambda: (watch.state, watch.alerts))

    async def answer(_: Request) -> Response:
        return Response(exposition.page(), headers={"content-type": exposition.media_type, "cache-control": "no-store"})

    return (Route(METRICS, answer),)
