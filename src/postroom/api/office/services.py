"""The server itself: how it is, its channels, its log, and stopping it to come back."""

from typing import Any

from fastapi import APIRouter

from postroom.api.dependencies import Asked, Dependencies
from postroom.api.openapi import AnswerModel, Id, Limit, Ok, answers
from postroom.api.responses import Json
from postroom.clock import SECOND, iso
from postroom.services.log_lines import plain
from postroom.services.system import ChannelRefused, RestartUnavailable


def routes(deps: Dependencies) -> APIRouter:
    api = APIRouter(tags=["services"])
    system = deps.services.system

    @api.get("/api/status", responses=answers(AnswerModel))
    async def status(caller: Asked) -> Json:
        """How long the server has been running, and what runs in it."""
        found = await system.status(caller)
        return Json(
            {
                "ok": True,
                "uptime": found.uptime // SECOND,
                "uptime_s": found.uptime // SECOND,
                "server": {"running": True, "port": found.port},
                "channels": found.channels,
                "heartbeat": {
                    "running": found.interval_s > 0,
                    "interval": _whole(found.interval_s),
                    "interval_s": found.interval_s,
                    "lastSent": {agent: at // SECOND for agent, at in found.heartbeats.items()},
                    "last_sent_at": {agent: iso(at) for agent, at in found.heartbeats.items()},
                },
            }
        )

    @api.post("/api/services/apply", responses=answers(Ok))
    async def apply(caller: Asked) -> Json:
        """Start every channel that is switched on."""
        started, failed = await system.apply(caller)
        body: dict[str, Any] = {"ok": True, "started": list(started)}
        errors = [f"{name}: failed to start or already running" for name in failed]
        return Json({**body, "errors": errors} if errors else body)

    @api.post("/api/services/channel/{id}/start", responses=answers(Ok, 400))
    async def start(caller: Asked, id: Id) -> Json:  # noqa: A002
        """Start the client of a messaging platform."""
        return await _channel(system.start_channel(caller, id), id, "started")

    @api.post("/api/services/channel/{id}/stop", responses=answers(Ok, 400))
    async def stop(caller: Asked, id: Id) -> Json:  # noqa: A002
        """Stop it."""
        return await _channel(system.stop_channel(caller, id), id, "stopped")

    @api.post("/api/services/channel/{id}/restart", responses=answers(Ok, 400))
    async def restart_channel(caller: Asked, id: Id) -> Json:  # noqa: A002
        """Stop it and start it again."""
        return await _channel(system.restart_channel(caller, id), id, "restarted")

    @api.post("/api/services/restart", responses={**answers(Ok, 409), 501: {"model": Ok}})
    async def restart(caller: Asked) -> Json:
        """Stop the server and start it again. The same process comes back. If it could not, it stays."""
        try:
            await system.restart(caller)
        except RestartUnavailable as error:
            return _refusal(error)
        return Json({"ok": True, "action": "restart"})

    @api.get("/api/logs", responses=answers(AnswerModel))
    async def logs(caller: Asked, limit: Limit = 100) -> Json:
        """The newest lines of the log."""
        return Json({"lines": [plain(line) for line in await system.logs(caller, limit)]})

    @api.get("/api/chats", responses=answers(list[AnswerModel]))
    async def chats(caller: Asked) -> Json:
        """Conversations that are kept as files, the newest first."""
        found = await system.chats(caller)
        return Json([{"teamId": each.team, "file": each.name, "time": each.changed_at} for each in found])

    return api


async def _channel(work: Any, channel: str, action: str) -> Json:
    try:
        await work
    except ChannelRefused as error:
        return _refusal(error)
    return Json({"ok": True, "channel": channel, "action": action})


def _refusal(error: ChannelRefused | RestartUnavailable) -> Json:
    """Clients of these look at `ok`."""
    return Json({"ok": False, "error": str(error), "code": error.code}, status_code=error.http_status)


def _whole(seconds: float) -> float | int:
    return int(seconds) if float(seconds).is_integer() else seconds
