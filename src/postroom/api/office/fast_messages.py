"""A message that is in order is accepted without the framework, which costs more than all the rest of its
way. Whatever is not in order goes the ordinary way, where it is told what is wrong.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from postroom.api import error_responses
from postroom.api.office.messages import PATH, accept, read
from postroom.api.responses import Json
from postroom.services.conversations import ConversationService

JSON = b"application/json"


class FastMessages:
    """Stands behind the authentication, like everything."""

    def __init__(self, conversations: ConversationService, app: ASGIApp) -> None:
        self._conversations = conversations
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") != PATH or scope.get("method") != "POST" or not _is_json(scope):
            await self._app(scope, receive, send)
            return
        message = await receive()
        whole = message["type"] == "http.request" and not message.get("more_body")
        body = read(message["body"]) if whole else None
        if body is None:
            await self._app(scope, _again(message, receive), send)
            return
        try:
            answer: Json = await accept(self._conversations, scope["state"]["caller"], body)
        except Exception as error:
            answer = error_responses.answer("POST", PATH, error)
        await answer(scope, receive, send)


def _is_json(scope: Scope) -> bool:
    return any(name == b"content-type" and value.startswith(JSON) for name, value in scope["headers"])


def _again(message: Message, receive: Receive) -> Receive:
    """What was read is read once more, then what follows it."""
    read_before: list[Message] = [message]

    async def again() -> Message:
        return read_before.pop() if read_before else await receive()

    return again
