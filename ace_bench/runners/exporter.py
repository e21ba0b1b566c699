"""Live progress in Prometheus format, for long runs (``metrics_port=9100``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from ace_bench.core.errors import ConfigError
from ace_bench.runners.progress import Progress

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_PREFIX = "ace_bench_"
_COUNTERS: Mapping[str, tuple[str, Callable[[Progress], float | None]]] = {
    "calls": ("Model calls of the run", lambda now: now.spent.calls),
    "retries": ("Failed attempts that were repeated", lambda now: now.spent.retries),
    "prompt_tokens": ("Prompt tokens of the run", lambda now: now.spent.usage.prompt),
    "completion_tokens": ("Completion tokens of the run", lambda now: now.spent.usage.completion),
    "cached_tokens": ("Prompt tokens served from the prefix cache", lambda now: now.spent.usage.cached),
    "usd": ("Dollars of the run", lambda now: now.spent.usage.usd),
}
_GAUGES: Mapping[str, tuple[str, Callable[[Progress], float | None]]] = {
    "done": ("Units finished in the current phase", lambda now: now.done),
    "total": ("Units of the current phase", lambda now: now.total),
    "score": ("Running score of the current phase in percent", lambda now: now.score),
    "faults": ("Faulted rollouts in the current phase", lambda now: now.faults),
    "context_items": ("Items in the context", lambda now: now.context_size),
    "context_tokens": ("Tokens of the context", lambda now: now.context_tokens),
}


class Exporter:
    """An observer that serves the latest snapshot at ``http://127.0.0.1:<port>/metrics``.

    What only grows in a run is a counter, whose name ends in ``_total``; what starts again with every phase, or may
    shrink, is a gauge. Unknown figures have no sample.
    """

    def __init__(self, port: int):
        """Start serving; raises ``ConfigError`` if the port is taken."""
        from prometheus_client import CollectorRegistry, start_http_server

        self._latest: Progress | None = None
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._server, self._thread = start_http_server(port, addr="127.0.0.1", registry=registry)
        except OSError as error:
            raise ConfigError(f"metrics_port={port} cannot be served ({error}); choose another port") from error

    def collect(self) -> Iterator[Metric]:
        """Yield the figures of the latest snapshot, as ``prometheus_client`` asks for them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        progress = self._latest
        if progress is None:
            return
        for kind, figures in ((CounterMetricFamily, _COUNTERS), (GaugeMetricFamily, _GAUGES)):
            for name, (text, read) in figures.items():
                if (value := read(progress)) is not None:
                    yield kind(_PREFIX + name, text, value=value)
        phase = GaugeMetricFamily(f"{_PREFIX}phase", "1 for the phase under way", labels=["phase"])
        phase.add_metric([progress.phase], 1)
        yield phase

    def update(self, progress: Progress) -> None:
        """Take a snapshot."""
        self._latest = progress

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
