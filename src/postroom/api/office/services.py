"""The house itself: how it is, its channels, its log, and closing it to come back."""

import asyncio
import contextlib
from typing import Any

from fastapi import APIRouter

from postroom.api.dependencies import Dependencies
from postroom.api.openapi import AnswerModel, Id, Limit, Ok, answers
from postroom.api.responses import Json
from postroom.clock import SECOND
from postroom.services.log_lines import last_lines, plain

RESTART_S = 0.1


def routes(front: Dependencies) -> APIRouter:
    api = APIRouter(tags=["services"])
    channels = front.channels

    @api.get("/api/status", responses=answers(AnswerModel))
    async def status() -> Json:
        """How long the house has been open, and what runs in it."""
        settings = front.staff.settings
        found: dict[str, dict[str, object]] = {name: {"running": False} for name in settings.channels.enabled}
        found.update(channels.status())
        last = await front.staff.office.heartbeats.last_sent()
        interval = settings.monitoring.heartbeat_interval
        return Json(
            {
                "ok": True,
                "uptime": max(0, front.clock.now() - front.started_at) // SECOND,
                "server": {"running": True, "port": front.port},
                "channels": found,
                "heartbeat": {
                    "running": interval > 0,
                    "interval": _whole(interval),
                    "lastSent": {agent: at // SECOND for agent, at in last.items()},
                },
            }
        )

    @api.post("/api/services/apply", responses=answers(Ok))
    async def apply() -> Json:
        """Start every channel that is switched on."""
        await front.staff.apply()
        started: list[str] = []
        errors: list[str] = []
        for name in front.staff.settings.channels.enabled:
            if await channels.start(name):
                started.append(name)
            else:
                errors.append(f"{name}: failed to start or already running")
        body: dict[str, Any] = {"ok": True, "started": started}
        return Json({**body, "errors": errors} if errors else body)

    def done(channel: str, action: str) -> Json:
        return Json({"ok": True, "channel": channel, "action": action})

    def failed(sentence: str) -> Json:
        return Json({"ok": False, "error": sentence, "code": "CHANNEL"}, status_code=400)

    @api.post("/api/services/channel/{id}/start", responses=answers(Ok, 400))
    async def start(id: Id) -> Json:  # noqa: A002
        """Start the client of a messaging platform."""
        if not await channels.start(id):
            return failed(f"Failed to start {id} (unknown, already running, or missing token)")
        return done(id, "started")

    @api.post("/api/services/channel/{id}/stop", responses=answers(Ok, 400))
    async def stop(id: Id) -> Json:  # noqa: A002
        """Stop it."""
        return done(id, "stopped") if await channels.stop(id) else failed(f"{id} is not running")

    @api.post("/api/services/channel/{id}/restart", responses=answers(Ok, 400))
    async def restart_channel(id: Id) -> Json:  # noqa: A002
        """Stop it and start it again."""
        await channels.stop(id)
        return done(id, "restarted") if await channels.start(id) else failed(f"Failed to restart {id}")

    @api.post("/api/services/restart", responses={**answers(Ok, 409), 501: {"model": Ok}})
    async def restart() -> Json:
        """Close the house and open it again. The same process comes back. If it could not, it stays."""
        if front.restart is None:
            body = {"ok": False, "error": "Restart not available", "code": "RESTART"}
            return Json(body, status_code=501)
        await asyncio.to_thread(front.check_restart)
        asyncio.get_running_loop().call_later(RESTART_S, front.restart)
        return Json({"ok": True, "action": "restart"})

    @api.get("/api/logs", responses=answers(AnswerModel))
    async def logs(limit: Limit = 100) -> Json:
        """The newest lines of the log."""
        found = await asyncio.to_thread(last_lines, front.logs, limit)
        return Json({"lines": [plain(line) for line in found]})

    @api.get("/api/chats", responses=answers(list[AnswerModel]))
    async def chats() -> Json:
        """Conversations that are kept as files, the newest first."""
        return Json(await asyncio.to_thread(_chats, front))

    return api


def _whole(seconds: float) -> float | int:
    return int(seconds) if float(seconds).is_integer() else seconds


def _chats(front: Dependencies) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with contextlib.suppress(OSError):
        for file in (front.home / "chats").glob("*/*.md"):
            with contextlib.suppress(OSError):
                time = file.stat().st_mtime * 1000
                found.append({"teamId": file.parent.name, "file": file.name, "time": time})
    return sorted(found, key=lambda chat: chat["time"], reverse=True)
