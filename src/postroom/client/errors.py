"""What goes wrong, as the service told it."""

from typing import Any

from postroom.errors import PostroomError


class ServiceError(PostroomError):
    """The service refused with {status} {code}: {message}"""

    code = "SERVICE_ERROR"
    http_status = 502

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
    return ServiceError(
        status=status,
        code=error.get("code", "HTTP_ERROR"),
        message=error.get("message", "no reason was given"),
        details=error.get("details", []),
        retry_after=seconds if isinstance(seconds, int | float) else None,
        request_id=meta.get("request_id") if isinstance(meta, dict) else None,
    )
