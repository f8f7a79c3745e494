"""A lineage server on loopback: it takes the events that the real client sends, and refuses all else."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KINDS = ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")


class LineageServer(ThreadingHTTPServer):
    """`answer` is the status it gives; `events` is what it took, `asked` counts every request."""

    def __init__(self, answer: int = 201) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked = 0
        self.events: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.authorizations: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: LineageServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        self.server.asked += 1
        self.server.authorizations.append(self.headers["Authorization"])
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.answer
        if status == 201:
            problem = _problem(self.path, json.loads(body))
            if problem:
                self.server.refused.append(problem)
                status = 400
            else:
                self.server.events.append(json.loads(body))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass


def _problem(path: str, event: dict[str, Any]) -> str:
    """What the protocol asks of every event of a run."""
    if path != "/api/v1/lineage":
        return f"nothing is at {path}"
    missing = {"eventType", "eventTime", "run", "job", "producer", "schemaURL"} - set(event)
    if missing:
        return f"{sorted(missing)} missing"
    if event["eventType"] not in KINDS:
        return f"no such event: {event['eventType']}"
    for place in [*event["inputs"], *event["outputs"]]:
        if not place["namespace"] or not place["name"]:
            return f"a dataset without a name: {place}"
    return ""


@contextmanager
def lineage_server(answer: int = 201) -> Iterator[LineageServer]:
    server = LineageServer(answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
