"""What goes wrong, as the service told it: each refusal is also an error of the kind its code names, so that
`except QueueNotFound` holds for a room in this process and for one behind HTTP."""

import functools
from typing import Any

from postroom import errors
from postroom.errors import Conflict, Invalid, NotFound, PostroomError, StoreError

# Codes that are not shared with other services of its platform begin so.
PREFIX = "SCAIQUEUE_"
UNKNOWN = "HTTP_ERROR"
_OF_STATUS: dict[int, type[PostroomError]] = {
    400: Invalid,
    404: NotFound,
    409: Conflict,
    413: Invalid,
    422: Invalid,
    503: StoreError,
}


class ServiceError(PostroomError):
    """The service refused with {status} {code}: {message}"""

    code = "SERVICE_ERROR"
    http_status = 502

    def __init__(self, **data: Any) -> None:
        # Not that of the kind it also is, which has data of its own.
        PostroomError.__init__(self, **data)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.data,), self.__dict__

    @property
    def status(self) -> int:
        return self.data["status"]

    @property
    def service_code(self) -> str:
        """Branch on this, not on the message."""
        return self.data["code"]

    @property
    def details(self) -> list[dict[str, str]]:
        return self.data["details"]

    @property
    def retry_after(self) -> float | None:
        return self.data["retry_after"]


def refused(status: int, document: Any) -> ServiceError:
    """Also of something that stands before the service and answers in its own way."""
    said = document if isinstance(document, dict) else {}
    error, meta = said.get("error") or {}, said.get("meta")
    if not isinstance(error, dict):
        error = {"message": str(error)}
    seconds = error.get("retry_after")
    return _rebuild(
        {
            "status": status,
            "code": error.get("code", UNKNOWN),
            "message": error.get("message", "no reason was given"),
            "details": error.get("details", []),
            "retry_after": seconds if isinstance(seconds, int | float) else None,
            "request_id": meta.get("request_id") if isinstance(meta, dict) else None,
        }
    )


def _rebuild(data: dict[str, Any]) -> ServiceError:
    return _find_kind(str(data["code"]), data["status"])(**data)


@functools.lru_cache(maxsize=256)
def _find_kind(code: str, status: int) -> type[ServiceError]:
    """Of a code that is not known here, that of its status. What stands before the service has no codes."""
    if code == UNKNOWN:
        return ServiceError
    own = code.removeprefix(PREFIX)
    kind = _kinds().get(own) or _OF_STATUS.get(status)
    facts = {"__doc__": ServiceError.__doc__, "code": own, "http_status": status}
    if kind is None:
        return type("ServiceError", (ServiceError,), facts)
    return type(kind.__name__, (ServiceError, kind), {**facts, "exit_code": kind.exit_code})


@functools.cache
def _kinds() -> dict[str, type[PostroomError]]:
    """The class of each code; of those that share one, what they have in common."""
    found: dict[str, type[PostroomError]] = {}
    for each in vars(errors).values():
        if isinstance(each, type) and issubclass(each, PostroomError):
            known = found.get(each.code, each)
            found[each.code] = next(base for base in known.__mro__ if issubclass(each, base))
    return found
