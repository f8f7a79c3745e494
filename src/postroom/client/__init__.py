"""A typed client of the work-queue service, synchronous and asynchronous.

with Client("http://127.0.0.1:3777", key) as queue:
    queue.publish("orders/new", {"total": 12}, idempotency_key="order-1")
    for message in queue.claim("orders/new", wait_s=20):
        queue.complete(message, {"paid": True})
"""

from postroom.client.asynchronous import AsyncClient
from postroom.client.errors import ServiceError
from postroom.client.model import Key, Message, Page, Queue, Rule, Scope
from postroom.client.synchronous import Client

__all__ = ["AsyncClient", "Client", "Key", "Message", "Page", "Queue", "Rule", "Scope", "ServiceError"]
