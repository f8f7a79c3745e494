"""The codes that clients of the work queue know errors by."""

from postroom.errors import PostroomError

# Codes that the service shares with its platform; all others carry its own prefix.
SHARED = frozenset(
    {
        "AUTH_TOKEN_MISSING",
        "AUTH_TOKEN_INVALID",
        "SESSION_EXPIRED",
        "AUTH_INSUFFICIENT_SCOPE",
        "AUTHZ_PERMISSION_DENIED",
        "VALIDATION_ERROR",
        "SLUG_CONFLICT",
        "RATE_LIMITED",
    }
)


def code_of(error: PostroomError) -> str:
    return error.code if error.code in SHARED else f"SCAIQUEUE_{error.code}"
