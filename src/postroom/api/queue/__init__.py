"""The work-queue service under `/v1`: the services for other programs, with keys, limits and an audit."""

from postroom.api.queue.router import router

__all__ = ["router"]
