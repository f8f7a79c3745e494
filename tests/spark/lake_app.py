"""The endpoints of the lake alone, for its owner."""

from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI

from postroom.api.dependencies import caller_of
from postroom.api.office.insights import routes
from postroom.app.lake_reader import StoreLakeReader
from postroom.clock import SystemClock
from postroom.services import callers
from postroom.services.insights import InsightService


def lake_app(lake: str, store: str) -> FastAPI:
    nothing: Any = None  # the lake needs neither room nor office
    service = InsightService(nothing, StoreLakeReader(lake, store, SystemClock()))
    deps: Any = SimpleNamespace(services=SimpleNamespace(insights=service))
    app = FastAPI()
    app.include_router(routes(deps))
    app.dependency_overrides[caller_of] = callers.owner
    return app
