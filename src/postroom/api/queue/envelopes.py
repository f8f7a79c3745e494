"""The shapes of answers: `data` for one thing, `data`, `has_more` and `next_cursor` for a page, `error`."""

from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from postroom.api.queue.errors import code_of
from postroom.api.responses import Json
from postroom.errors import InvalidField, PostroomError

T = TypeVar("T")


class One(BaseModel, Generic[T]):
    """The answer about one thing."""

    status: str = "ok"
    data: T


class Many(BaseModel, Generic[T]):
    """A page of a list; `next_cursor` leads to the next one."""

    status: str = "ok"
    data: list[T]
    has_more: bool
    next_cursor: str | None


class Detail(BaseModel):
    field: str
    message: str


class Problem(BaseModel):
    code: str
    message: str
    retry_after: int | None = None
    details: list[Detail] | None = None


class Failure(BaseModel):
    """Branch on `error.code`; the message is for people."""

    status: str = "error"
    error: Problem
    meta: dict[str, str]


def one(data: Any, *, status: int = 200) -> Json:
    return Json({"status": "ok", "data": data}, status_code=status)


def many(data: list[Any], next_cursor: str | None = None) -> Json:
    return Json(
        {"status": "ok", "data": data, "has_more": next_cursor is not None, "next_cursor": next_cursor}
    )


def failed(error: PostroomError, request_id: str) -> Json:
    return problem_answer(error.http_status, problem_of(error), request_id)


def problem_of(error: PostroomError) -> dict[str, Any]:
    problem: dict[str, Any] = {"code": code_of(error), "message": str(error)}
    if error.http_status == 429:
        problem["retry_after"] = int(error.data.get("seconds", 1))
    if isinstance(error, InvalidField):
        problem["details"] = [{"field": error.data["field"], "message": error.data["problem"]}]
    elif "details" in error.data:
        problem["details"] = error.data["details"]
    if error.item is not None:
        problem["item"] = {"index": error.item, "idempotency_key": error.item_key}
    return problem


def problem_answer(status: int, problem: dict[str, Any], request_id: str) -> Json:
    answer = Json(
        {"status": "error", "error": problem, "meta": {"request_id": request_id}}, status_code=status
    )
    if status == 401:
        answer.headers["www-authenticate"] = 'Bearer realm="postroom"'
    if "retry_after" in problem:
        answer.headers["retry-after"] = str(problem["retry_after"])
    return answer
