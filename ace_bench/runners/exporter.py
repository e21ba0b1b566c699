"""Live progress in Prometheus format, for long runs (``metrics_port=9100``)."""

from __future__ import annotations

from ace_bench.core.errors import ConfigError
from ace_bench.runners.progress import Progress


class Exporter:
    """An observer that serves the latest snapshot at ``http://127.0.0.1:<port>/metrics``."""

    def __init__(self, port: int):
        """Start serving; raises ``ConfigError`` where the port is taken."""
        from prometheus_client import CollectorRegistry, Gauge, start_http_server

        registry = CollectorRegistry()
        self._gauges = {name: Gauge(f"ace_bench_{name}", text, registry=registry) for name, text in _GAUGES.items()}
        self._phase = Gauge("ace_bench_phase", "1 for the phase under way", ["phase"], registry=registry)
        try:
            self._server, self._thread = start_http_server(port, addr="127.0.0.1", registry=registry)
        except OSError as error:
            raise ConfigError(f"metrics_port={port} cannot be served ({error}); choose another port") from error

    def update(self, progress: Progress) -> None:
        """Take a snapshot; unknown figures are NaN."""
        usage = progress.spent.usage
        values = {
            "done": progress.done,
            "total": progress.total,
            "score": progress.score,
            "faults": progress.faults,
            "calls": progress.spent.calls,
            "retries": progress.spent.retries,
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "cached_tokens": usage.cached,
            "usd": usage.usd,
            "context_items": progress.context_size,
            "context_tokens": progress.context_tokens,
        }
        for name, value in values.items():
            self._gauges[name].set(float("nan") if value is None else value)
        self._phase.clear()
        self._phase.labels(progress.phase).set(1)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


_GAUGES = {
    "done": "Units finished in the current phase",
    "total": "Units of the current phase",
    "score": "Running score of the current phase in percent",
    "faults": "Faulted rollouts in the current phase",
    "calls": "Model calls of the run",
    "retries": "Failed attempts that were repeated",
    "prompt_tokens": "Prompt tokens of the run",
    "completion_tokens": "Completion tokens of the run",
    "cached_tokens": "Prompt tokens served from the prefix cache",
    "usd": "Dollars of the run",
    "context_items": "Items in the context",
    "context_tokens": "Tokens of the context",
}
