"""The work-queue service under `/v1`: the kernel for other programs, with keys, limits and an audit."""

from postroom.api.queue.router import router
from postroom.api.queue.service import QueueService

__all__ = ["QueueService", "router"]
