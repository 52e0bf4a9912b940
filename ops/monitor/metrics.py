"""A monitor's state in Prometheus' text format. Names follow its conventions; labels are bounded: roles, workers, queues,
streams, phases, kinds of alerts, egresses and guards of sites, never an episode, a task or a site."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ops.monitor.alerts.alert import Alert, Severity
from ops.monitor.state import MonitorState
from ops.monitor.worker_counters import only_rises
from schemas.messages import Verdict

Source = Callable[[], tuple[MonitorState, Sequence[Alert]]]
_PREFIX = "millrace"
_MOST_SERIES = 5_000
"""Of workers' own metrics: a run with very many workers does not flood a server."""


class Exposition:
    """`page` is what a scrape gets: the state as it is at that moment."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, run: str, source: Source) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_RunCollector(run, source))

    def page(self) -> bytes:
        return generate_latest(self._registry)


class _RunCollector(Collector):
    def __init__(self, run: str, source: Source) -> None:
        self._run = run
        self._source = source

    def describe(self) -> Iterable[Metric]:
        """Nothing: what there is is known when it is collected."""
        return ()

    def collect(self) -> Iterator[Metric]:
        state, alerts = self._source()
        yield from self._training(state)
        yield from self._judging(state)
        yield from self._blocking(state)
        yield from self._flow(state)
        yield from self._server(state)
        yield from self._workers(state)
        yield self._alerts(alerts)

    def _gauge(self, name: str, text: str, value: float | None) -> Iterator[Metric]:
        """Nothing for what is not known."""
        if value is not None:
            metric = GaugeMetricFamily(f"{_PREFIX}_{name}", text, labels=["run"])
            metric.add_metric([self._run], value)
            yield metric

    def _counter(self, name: str, text: str, value: float) -> Metric:
        metric = CounterMetricFamily(f"{_PREFIX}_{name}", text, labels=["run"])
        metric.add_metric([self._run], value)
        return metric

    def _labelled(self, name: str, text: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
        metric = GaugeMetricFamily(f"{_PREFIX}_{name}", text, labels=["run", label])
        for of, value in values:
            metric.add_metric([self._run, of], value)
        return metric

    def _training(self, state: MonitorState) -> Iterator[Metric]:
        run = state.run
        yield from self._gauge("policy_version", "Newest announced version.", state.version)
        yield from self._gauge("training_success_ratio", "Of the latest training episodes.", run.success)
        held_out = list(run.evaluations.values())
        yield from self._gauge(
            "held_out_success_ratio", "Of the newest evaluation round.", held_out[-1].success if held_out else None
        )
        yield from self._gauge(
            "mismatch_nats", "Of sampler and trainer, newest version.", run.mismatches[-1] if run.mismatches else None
        )
        yield from self._gauge("staleness_versions", "Mean of the newest version's batch.", run.metrics.get("staleness_mean"))
        yield from self._gauge("parse_ratio", "Of the latest training episodes' steps.", state.judging.parse_rate)
        published = state.version_times[-1] if state.version_times else None
        yield from self._gauge("version_published_timestamp_seconds", "Of the newest version.", published)

    def _judging(self, state: MonitorState) -> Iterator[Metric]:
        judged = CounterMetricFamily(f"{_PREFIX}_judgements", "Judgements of the run.", labels=["run", "verdict"])
        for verdict in Verdict:
            judged.add_metric([self._run, verdict.value], state.judging.counts[verdict])
        yield judged
        spending = state.judging.spending
        yield self._counter("judge_calls", "Answers of judges' models.", spending.num_calls)
        yield self._counter("judge_failed_requests", "Requests of judges without an answer.", spending.num_failures)
        yield self._counter("judge_prompt_tokens", "Of judges' models.", spending.prompt_tokens)
        yield self._counter("judge_completion_tokens", "Of judges' models.", spending.completion_tokens)
        yield self._counter("judge_cost", "In the currency of openai_config.prices.", spending.cost)

    def _blocking(self, state: MonitorState) -> Iterator[Metric]:
        blocking = state.blocking
        visits = CounterMetricFamily(f"{_PREFIX}_visits", "Judged attempts at episodes.", labels=["run", "egress"])
        blocked = CounterMetricFamily(f"{_PREFIX}_blocked_visits", "That their sites blocked.", labels=["run", "egress"])
        for egress, seen in blocking.by_egress.items():
            visits.add_metric([self._run, egress], seen.number)
            blocked.add_metric([self._run, egress], seen.num_blocked)
        yield visits
        yield blocked
        by_provider = CounterMetricFamily(
            f"{_PREFIX}_blocks", "Blocked visits, by who guards the site.", labels=["run", "provider"]
        )
        for provider, count in blocking.by_provider.items():
            by_provider.add_metric([self._run, provider], count)
        yield by_provider
        sites = sum(seen.num_blocked > 0 for seen in blocking.by_site.values())
        yield from self._gauge("sites_with_blocks", "Sites that blocked a visit.", sites)

    def _flow(self, state: MonitorState) -> Iterator[Metric]:
        phases = ((phase.value, float(count)) for phase, count in state.cells.counts().items())
        yield self._labelled("episodes", "Live episodes, and those that ended a moment ago.", "phase", phases)
        yield self._counter("episodes_ended", "Since this monitor began.", state.ended.total)
        yield self._counter("steps", "Since this monitor began.", state.steps.total)
        queues = list(state.queues.values())
        pending = ((queue.name, float(queue.depth.num_pending)) for queue in queues)
        yield self._labelled("queue_pending", "Deliveries that nobody has taken.", "queue", pending)
        taken = ((queue.name, float(queue.depth.num_in_flight)) for queue in queues)
        yield self._labelled("queue_in_flight", "Deliveries that are taken and not acknowledged.", "queue", taken)
        oldest = ((queue.name, queue.oldest_s) for queue in queues if queue.oldest_s is not None)
        yield self._labelled("queue_oldest_seconds", "Age of the oldest unacknowledged record.", "queue", oldest)
        yield from self._gauge("dead_letters", "That nobody has sent again.", len(state.letters))

    def _server(self, state: MonitorState) -> Iterator[Metric]:
        server = state.server
        yield from self._gauge("server_up", "Whether the newest request was answered.", float(not server.error))
        yield from self._gauge("server_answer_seconds", "Median time of the latest answers.", server.answer_s)
        streams = list(state.streams.values())
        sizes = ((stream.stream, float(stream.num_bytes)) for stream in streams)
        yield self._labelled("stream_bytes", "Stored.", "stream", sizes)
        limits = ((stream.stream, float(stream.max_bytes)) for stream in streams if stream.max_bytes)
        yield self._labelled("stream_limit_bytes", "Of streams that have a limit.", "stream", limits)
        counts = ((stream.stream, float(stream.num_messages)) for stream in streams)
        yield self._labelled("stream_messages", "Stored.", "stream", counts)
        yield from self._gauge("store_bytes", "Of all streams of the run.", state.store.num_bytes if state.store else None)
        yield from self._gauge(
            "disk_free_bytes", "Where the server's data lie.", state.disk.free_bytes if state.disk else None
        )

    def _workers(self, state: MonitorState) -> Iterator[Metric]:
        labels = ["run", "role", "worker"]
        heard = GaugeMetricFamily(f"{_PREFIX}_worker_heartbeat_timestamp_seconds", "When it was last heard.", labels=labels)
        now = GaugeMetricFamily(
            f"{_PREFIX}_worker", "What a worker says of itself: docs/monitor.md.", labels=[*labels, "name"]
        )
        counted = CounterMetricFamily(
            f"{_PREFIX}_worker_counted", "The same, where it only rises while the worker lives.", labels=[*labels, "name"]
        )
        num_series = 0
        for worker in state.workers.in_order():
            of = [self._run, worker.role.value, worker.name]
            heard.add_metric(of, worker.heard_at)
            for name, value in state.metrics_of(worker).items():
                num_series += 1
                if num_series <= _MOST_SERIES:
                    (counted if only_rises(worker.role, name) else now).add_metric([*of, name], value)
        yield heard
        yield now
        yield counted

    def _alerts(self, alerts: Sequence[Alert]) -> Metric:
        metric = GaugeMetricFamily(f"{_PREFIX}_alerts", "Alerts that are raised.", labels=["run", "kind", "severity"])
        counts: dict[tuple[str, Severity], int] = {}
        for alert in alerts:
            key = (alert.condition.key.kind, alert.condition.severity)
            counts[key] = counts.get(key, 0) + 1
        for (kind, severity), count in counts.items():
            metric.add_metric([self._run, kind, severity.value], count)
        return metric
