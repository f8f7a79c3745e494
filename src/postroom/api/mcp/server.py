"""The MCP server: tools with their descriptions, bound to whoever calls."""

import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

from postroom import __version__
from postroom.api import error_responses
from postroom.api.dependencies import Dependencies
from postroom.api.mcp.tools import NotForKeys, Tools
from postroom.errors import PostroomError
from postroom.kernel import jsontext
from postroom.kernel.access.permissions import Permission
from postroom.services.callers import Caller, CallerKind

PATH = "/mcp"
ABOUT = """The post room: write to agents, work with queues, ask a person, look after tasks. Everything you do
is done in your own name."""


# What of them a key opens, and with which permission: that of the endpoint behind it.
FOR_KEYS = {
    "publish": Permission.PUBLISH,
    "claim": Permission.CONSUME,
    "complete": Permission.CONSUME,
    "fail": Permission.CONSUME,
}


def _visitor(request: Any) -> Caller:
    if request is None:
        raise ToolError("There is no caller.")
    return request.scope["state"]["caller"]


async def _told(work: Awaitable[Any]) -> str:
    """One text of JSON; what goes wrong is a sentence the model can act on."""
    try:
        return jsontext.text(await work)
    except PostroomError as error:
        raise ToolError(f"{error} ({error.code})") from None
    except TypeError as error:
        raise ToolError(f"The arguments do not fit: {error}") from None


@contextlib.contextmanager
def _logs_as_they_are() -> Iterator[None]:
    """The library sets up logging for the whole process, which is not its business here."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _shown_to_their_callers(deps: Dependencies) -> Any:
    """The list of tools leaves out what the caller cannot use."""

    async def listed(context: Any, call_next: Any) -> Any:
        result = await call_next(context)
        if context.method != "tools/list" or (caller := _visitor(context.request)).kind is not CallerKind.KEY:
            return result
        told = result if isinstance(result, dict) else result.model_dump(by_alias=True, exclude_none=True)
        tools = [tool for tool in told["tools"] if FOR_KEYS.get(tool["name"]) in caller.permissions]
        return {**told, "tools": tools}

    return listed


def tool_server(deps: Dependencies) -> MCPServer[Any]:
    with _logs_as_they_are():
        server: MCPServer[Any] = MCPServer("postroom", instructions=ABOUT, version=__version__)
    server.middleware.append(_shown_to_their_callers(deps))
    tools = Tools(deps)

    def _caller(context: Context[Any, Any]) -> Caller:
        caller = _visitor(context.request_context.request)
        if caller.kind is CallerKind.KEY:
            raise ToolError(str(NotForKeys()))
        return caller

    async def _in_queues(context: Context[Any, Any], work: Callable[[Caller], Awaitable[Any]]) -> Any:
        """Counted and audited like any other request of the caller."""
        caller = _visitor(context.request_context.request)
        await deps.services.authentication.admit(caller)
        return await work(caller.with_request(str(uuid.uuid4())))

    @server.tool()
    async def send_message(to: str, text: str, ctx: Context[Any, Any]) -> str:
        """Write to a teammate, or to a team you are in. The answer comes to your inbox; see read_inbox."""
        return await _told(tools.send_message(_caller(ctx), to, text))

    @server.tool()
    async def read_inbox(ctx: Context[Any, Any], limit: int = 20) -> str:
        """Read the answers to what you have sent. Where `waiting` is true there is none yet: look later."""
        return await _told(tools.read_inbox(_caller(ctx), limit))

    @server.tool()
    async def publish(queue: str, body: Any, ctx: Context[Any, Any]) -> str:
        """Put a message into a work queue, named as scope/queue; without a scope, one of `default`."""
        return await _told(_in_queues(ctx, lambda caller: tools.publish(caller, queue, body)))

    @server.tool()
    async def claim(queue: str, ctx: Context[Any, Any], limit: int = 1) -> str:
        """Take messages from a work queue, to complete or fail each with its claim_token."""
        return await _told(_in_queues(ctx, lambda caller: tools.claim(caller, queue, limit)))

    @server.tool()
    async def complete(id: str, claim_token: str, ctx: Context[Any, Any], result: Any = None) -> str:  # noqa: A002
        """Say that the work on a claimed message is done."""
        return await _told(_in_queues(ctx, lambda caller: tools.complete(caller, id, claim_token, result)))

    @server.tool()
    async def fail(id: str, claim_token: str, reason: str, ctx: Context[Any, Any]) -> str:  # noqa: A002
        """Say that the work on a claimed message did not succeed; it is tried again later."""
        return await _told(_in_queues(ctx, lambda caller: tools.fail(caller, id, claim_token, reason)))

    @server.tool()
    async def ask_human(question: str, ctx: Context[Any, Any], options: list[str] | None = None) -> str:
        """Ask a person to decide; see read_answer with the id this returns."""
        return await _told(tools.ask_human(_caller(ctx), question, options or []))

    @server.tool()
    async def read_answer(id: str, ctx: Context[Any, Any]) -> str:  # noqa: A002
        """What a person has decided, if anybody has yet."""
        return await _told(tools.read_answer(_caller(ctx), id))

    @server.tool()
    async def list_agents(ctx: Context[Any, Any]) -> str:
        """Who works here, and in which teams."""
        return await _told(tools.list_agents(_caller(ctx)))

    @server.tool()
    async def search_history(query: str, ctx: Context[Any, Any], limit: int = 20) -> str:
        """Find what was said to you and by you, by words."""
        return await _told(tools.search_history(_caller(ctx), query, limit))

    @server.tool()
    async def tasks(
        action: str, ctx: Context[Any, Any], task: str = "", fields: dict[str, Any] | None = None
    ) -> str:
        """The board. Actions: list, add (fields.title), change and comment (task, fields; fields.content)."""
        return await _told(tools.tasks(_caller(ctx), action, task, fields))

    return server


def tool_app(deps: Dependencies) -> Starlette:
    """Each request stands alone, so that a restart of the server disturbs no client."""
    served = tool_server(deps).streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        json_response=True,
        # The authentication has looked at both, by the settings of the moment.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    error_responses.register(served)
    return served


@contextlib.asynccontextmanager
async def running(app: Starlette) -> AsyncIterator[None]:
    async with app.router.lifespan_context(app):
        yield
