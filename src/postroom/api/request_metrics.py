"""How many requests were answered, how, and how long it took.

Of a path only its first part is a label, so that nobody makes labels by asking for things that are not there.
"""

import time

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PARTS = ("api", "v1", "mcp", "hooks", "metrics", "healthz", "readyz")
PORTAL = "portal"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
SPANS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class RequestMetrics:
    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        self._app = app
        self._requests = Counter(
            "postroom_http_requests", "Requests by how they were answered", ("part", "method", "status"),
            registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "postroom_http_request_seconds", "Until the first byte of the answer", ("part",), buckets=SPANS,
            registry=registry,
        )  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()

        async def observe(message: Message) -> None:
            if message["type"] == "http.response.start":
                first = scope["path"].split("/", 2)[1]
                part = first if first in PARTS else PORTAL
                method = scope["method"] if scope["method"] in METHODS else "other"
                self._requests.labels(part, method, f"{message['status'] // 100}xx").inc()
                self._seconds.labels(part).observe(time.perf_counter() - begun)
            await send(message)

        await self._app(scope, receive, observe)
