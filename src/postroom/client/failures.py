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
    error = document.get("error", {}) if isinstance(document, dict) else {}
    meta = document.get("meta", {}) if isinstance(document, dict) else {}
    if not isinstance(error, dict):
        error = {"message": str(error)}
    return ServiceError(
        status=status,
        code=error.get("code", "HTTP_ERROR"),
        message=error.get("message", "no reason was given"),
        details=error.get("details", []),
        retry_after=error.get("retry_after"),
        request_id=meta.get("request_id"),
    )
