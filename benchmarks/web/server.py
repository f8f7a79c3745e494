"""The server as it is, with one more endpoint whose handler does nothing: what the framework alone costs."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Body as From

import postroom
from postroom.api.app import create_app
from postroom.api.office.messages import EXAMPLES, MessageBody
from postroom.api.responses import Json
from postroom.app.application import build_dependencies
from postroom.app.http_server import listen, serving
from postroom.app.office_reloader import OfficeReloader
from postroom.app.server_process import settle
from postroom.clock import SystemClock
from postroom.settings import SettingsFile

TOKEN = "a-token-for-the-benchmark"


def empty() -> APIRouter:
    api = APIRouter()

    @api.post("/api/empty")
    async def nothing(mail: Annotated[MessageBody, From(openapi_examples=EXAMPLES)]) -> Json:
        return Json({"ok": True, "messageId": "api_00000000"})

    return api


async def main(folder: Path) -> None:
    document: dict[str, Any] = {
        "workspace": {"path": str(folder / "work")},
        "agents": {"coder": {"name": "Coder", "provider": "script", "model": ""}},
        "monitoring": {"heartbeat_interval": 0},
        "limits": {"inbox_depth": 10_000_000},
    }
    file = SettingsFile(folder / "settings.json")
    file.replace(document)
    clock = SystemClock()
    async with postroom.open(str(folder / "postroom.db")) as room:
        control = OfficeReloader(room, file, folder, clock, works=False, environment={})
        await control.open()
        deps = build_dependencies(room, control, file, folder, clock, token=TOKEN)
        listener = listen("127.0.0.1", 0)
        async with serving(create_app(deps, more=[empty()]), listener):
            settle()
            print(listener.getsockname()[1], flush=True)
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
