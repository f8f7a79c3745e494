"""A typed client of the work-queue service, synchronous and asynchronous.

with Client("http://127.0.0.1:3777", key) as queue:
    queue.publish("orders/new", {"total": 12}, idempotency_key="order-1")
    for message in queue.claim("orders/new", wait_s=20):
        queue.complete(message, {"paid": True})

A worker on any machine: run_workers(url, key, "orders/new", work, at_once=8)
"""

from postroom.client.asynchronous import AsyncClient
from postroom.client.errors import ServiceError
from postroom.client.model import CompletionOutcome, Key, Message, Page, Queue, Rule, Scope, StreamEvent
from postroom.client.synchronous import Client
from postroom.client.worker_pool import Unworkable, WorkerPool, run_workers

__all__ = [
    "AsyncClient",
    "Client",
    "CompletionOutcome",
    "Key",
    "Message",
    "Page",
    "Queue",
    "Rule",
    "Scope",
    "ServiceError",
    "StreamEvent",
    "Unworkable",
    "WorkerPool",
    "run_workers",
]
