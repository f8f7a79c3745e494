"""JSON answers, and errors in the shape each part of the API promises."""

import uuid
from typing import Any

import msgspec
from starlette.responses import Response

from postroom.api.office.contract import told
from postroom.errors import PostroomError

_encode = msgspec.json.Encoder().encode


class Json(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        try:
            return _encode(content)
        except UnicodeEncodeError:
            return _encode(_whole(content))


def _whole(value: Any) -> Any:
    """Half a character, as names of files and JSON of others may hold, is shown as one that is not known."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_whole(name): _whole(below) for name, below in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(below) for below in value]
    return value


OK = {"ok": True}


def is_queue_service(path: str) -> bool:
    return path == "/v1" or path.startswith("/v1/")


def error_body(path: str, code: str, message: str, **more: Any) -> dict[str, Any]:
    """The office's clients read `error` as a sentence; those of the queue service as an object."""
    if is_queue_service(path):
        meta = {"request_id": str(uuid.uuid4())}
        return {"status": "error", "error": {"code": code, "message": message, **more}, "meta": meta}
    return {"error": message, "code": code, **more}


def failure(path: str, error: PostroomError) -> Json:
    status, sentence = told(error) if path.startswith("/api/") else (error.http_status, str(error))
    headers: dict[str, str] = {}
    if error.http_status == 401:
        headers["www-authenticate"] = 'Bearer realm="postroom"'
    if error.http_status == 429:
        headers["retry-after"] = str(error.data.get("seconds", 1))
    more = {"field": error.data["field"]} if error.http_status == 422 and "field" in error.data else {}
    body = error_body(path, error.code, sentence, **more)
    return Json(body, status_code=status, headers=headers)
