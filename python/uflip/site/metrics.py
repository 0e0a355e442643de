"""The metrics of a site for Prometheus: requests, refusals, stored results, examiners, database.

Counters grow with each request. Gauges are read from the site when the metrics are requested.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from sqlalchemy import Select, func, select, text

from uflip.site.site import Site
from uflip.site.tables import ResultRecord, Submission

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})


class Slots(Protocol):
    """A limit of concurrent work, see `uflip.site.app.AccountLimiter`."""

    @property
    def busy(self) -> int:
        """Number of slots in use."""

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a slot."""


class SiteMetrics:
    """The metrics of one site."""

    def __init__(self, site: Site, examining: Slots) -> None:
        self.registry = CollectorRegistry()
        self._site = site
        self._requests = Counter(
            "uflip_requests", "Requests", ["method", "status"], registry=self.registry
        )
        self._refusals = Counter(
            "uflip_refusals", "Refused requests (4xx)", ["status"], registry=self.registry
        )
        self._seconds = Histogram("uflip_request_seconds", "Time to answer", registry=self.registry)
        published = ResultRecord.published_utc.is_not(None)
        results = select(func.count()).select_from(ResultRecord)
        uploads = select(func.count()).select_from(Submission)
        total = select(func.coalesce(func.sum(ResultRecord.bytes), 0))
        gauges: dict[tuple[str, str], Callable[[], float]] = {
            ("uflip_results_published", "Published results"): self._value(results.where(published)),
            ("uflip_results_stored", "Stored results"): self._value(results),
            ("uflip_result_bytes", "Bytes of all stored results"): self._value(total),
            ("uflip_unfinished_uploads", "Uploads that are not committed"): self._value(uploads),
            ("uflip_examiners_busy", "Examinations in progress"): lambda: examining.busy,
            ("uflip_examiners_waiting", "Results that wait for one"): lambda: examining.waiting,
            ("uflip_database_seconds", "Time of a query without rows"): self._query_seconds,
        }
        for (name, meaning), value in gauges.items():
            Gauge(name, meaning, registry=self.registry).set_function(value)

    def record(self, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        label = method if method in METHODS else "other"
        self._requests.labels(label, str(status)).inc()
        if 400 <= status < 500:
            self._refusals.labels(str(status)).inc()
        self._seconds.observe(seconds)

    def _value(self, query: Select[int]) -> Callable[[], float]:
        return partial(self._read, query)

    def _read(self, query: Select[int]) -> float:
        with self._site.sessions() as session:
            return float(session.scalar(query) or 0)

    def _query_seconds(self) -> float:
        begun = time.perf_counter()
        with self._site.sessions() as session:
            session.execute(text("SELECT 1"))
        return time.perf_counter() - begun
