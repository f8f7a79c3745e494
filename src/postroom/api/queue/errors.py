"""What the service refuses before the kernel is asked, and the codes its clients know errors by."""

from postroom.errors import NotFound, PostroomError


class TokenMissing(PostroomError):
    """A key is needed. Send it as "Authorization: Bearer …"."""

    code = "AUTH_TOKEN_MISSING"
    http_status = 401


class TokenInvalid(PostroomError):
    """This key is not known, or it was revoked. Ask an administrator for a new one."""

    code = "AUTH_TOKEN_INVALID"
    http_status = 401


class TokenExpired(PostroomError):
    """This key has expired. Ask an administrator for a new one, or rotate it before it expires."""

    code = "SESSION_EXPIRED"
    http_status = 401


class PermissionMissing(PostroomError):
    """This needs the permission scaiqueue:{permission}, which the key does not have."""

    code = "AUTHZ_PERMISSION_DENIED"
    http_status = 403


class OwnerOnly(PostroomError):
    """Only the owner of the house may do this. Use the token of the house."""

    code = "AUTH_INSUFFICIENT_SCOPE"
    http_status = 403


class KeyTooNarrow(PostroomError):
    """This key is bound to one scope and cannot be used for {what}."""

    code = "AUTH_INSUFFICIENT_SCOPE"
    http_status = 403


class AclDenied(PostroomError):
    """The access list of {place} does not allow this key to {permission} there."""

    code = "ACL_DENIED"
    http_status = 403


class TrustRequired(PostroomError):
    """The scope "{source}" may not {crossing} into "{target}". An administrator can add a trust."""

    code = "TRUST_REQUIRED"
    http_status = 403


class RateLimited(PostroomError):
    """Too many requests: {limit} a minute are allowed for this {whose}. Try again in {seconds} s."""

    code = "RATE_LIMITED"
    http_status = 429


class TenantNotFound(NotFound):
    """There is no tenant "{tenant}"."""

    code = "TENANT_NOT_FOUND"


class NoSuchThing(NotFound):
    """There is no {what} "{id}"."""

    code = "NOT_FOUND"

    @property
    def own_code(self) -> str:
        return f"{str(self.data['what']).upper().replace(' ', '_').replace('-', '_')}_NOT_FOUND"


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
    code = error.own_code if isinstance(error, NoSuchThing) else error.code
    return code if code in SHARED else f"SCAIQUEUE_{code}"
