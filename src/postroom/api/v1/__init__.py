"""The work-queue service under `/v1`: the kernel for other programs, with keys, limits and an audit."""

from postroom.api.v1.house import House
from postroom.api.v1.router import router

__all__ = ["House", "router"]
