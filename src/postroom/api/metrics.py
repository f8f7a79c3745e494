"""`GET /metrics` for Prometheus: what is where now, and what happened since the start. It needs the token."""

from collections.abc import Callable, Iterable

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.process_collector import ProcessCollector
from starlette.responses import Response

from postroom.api.activity_metrics import ActivityMetrics
from postroom.api.dependencies import Dependencies
from postroom.api.openapi import answers
from postroom.clock import SECOND
from postroom.kernel.model import Counts


class _Room:
    """What was counted for this one answer."""

    def __init__(
        self, counts: dict[str, dict[str, Counts]], head: int, listeners: int, uptime_s: float
    ) -> None:
        self._counts = counts
        self._head = head
        self._listeners = listeners
        self._uptime_s = uptime_s

    def collect(self) -> Iterable[Metric]:
        mail = GaugeMetricFamily(
            "postroom_messages", "Messages by queue and state", labels=("scope", "queue", "state")
        )
        for scope, queues in self._counts.items():
            for queue, counts in queues.items():
                for state in counts.__struct_fields__:
                    mail.add_metric((scope, queue, state), getattr(counts, state))
        yield mail
        yield GaugeMetricFamily("postroom_ledger_events", "The newest event's number", value=self._head)
        yield GaugeMetricFamily("postroom_event_listeners", "Open event streams", value=self._listeners)
        yield GaugeMetricFamily("postroom_uptime_seconds", "Since the server started", value=self._uptime_s)


def routes(
    deps: Dependencies, listeners: Callable[[], int], activity: ActivityMetrics, counted: CollectorRegistry
) -> APIRouter:
    """`counted` is what counts on from answer to answer."""
    api = APIRouter(tags=["health"])
    about = {
        "description": "In Prometheus' text format",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }

    @api.get("/metrics", responses={**answers(), 200: about}, response_class=Response)
    async def metrics() -> Response:
        """Counters for Prometheus."""
        counts = {scope.slug: await deps.room.scope_counts(scope.slug) for scope in await deps.room.scopes()}
        head = (await deps.room.head()).seq
        uptime_s = (deps.clock.now() - deps.started_at) / SECOND
        registry = CollectorRegistry()
        registry.register(_Room(counts, head, listeners(), uptime_s))
        ProcessCollector(registry=registry)
        await activity.catch_up()
        return Response(generate_latest(registry) + generate_latest(counted), media_type=CONTENT_TYPE_LATEST)

    return api
