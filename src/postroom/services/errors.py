"""What the services refuse before the kernel is asked."""

from postroom.errors import NotFound, PostroomError


class TokenMissing(PostroomError):
    """A key is needed. Send it as "Authorization: Bearer …"."""

    code = "AUTH_TOKEN_MISSING"
    http_status = 401
    exit_code = 3


class TokenInvalid(PostroomError):
    """This key is not known, or it was revoked. Ask an administrator for a new one."""

    code = "AUTH_TOKEN_INVALID"
    http_status = 401
    exit_code = 3


class TokenExpired(PostroomError):
    """This key has expired. Ask an administrator for a new one, or rotate it before it expires."""

    code = "SESSION_EXPIRED"
    http_status = 401
    exit_code = 3


class RequestLimitReached(PostroomError):
    """Too many requests: {limit} a minute are allowed for this {whose}. Try again in {seconds} s."""

    code = "RATE_LIMITED"
    http_status = 429


class TenantNotFound(NotFound):
    """There is no tenant "{tenant}"."""

    code = "TENANT_NOT_FOUND"


class AccessRefused(PostroomError):
    """This is not allowed."""

    code = "FORBIDDEN"
    http_status = 403
    exit_code = 3


class PermissionMissing(AccessRefused):
    """This needs the permission scaiqueue:{permission}, which the key does not have."""

    code = "AUTHZ_PERMISSION_DENIED"


class OwnerOnly(AccessRefused):
    """Only the owner may do this. Use the owner's token."""

    code = "AUTH_INSUFFICIENT_SCOPE"


class ViewersOnlyLook(AccessRefused):
    """You may look, but not act here. Ask the owner for a link as a member: postroom login --role member."""

    code = "AUTH_INSUFFICIENT_SCOPE"


class KeyTooNarrow(AccessRefused):
    """This key is bound to one scope and cannot be used for {what}."""

    code = "AUTH_INSUFFICIENT_SCOPE"


class AclDenied(AccessRefused):
    """The access list of {place} does not allow this key to {permission} there."""

    code = "ACL_DENIED"


class TrustRequired(AccessRefused):
    """The scope "{source}" may not {crossing} into "{target}". An administrator can add a trust."""

    code = "TRUST_REQUIRED"


class ScopeNotYours(AccessRefused):
    """@{agent} may work with queues of the scope "{scope}" only."""

    code = "QUEUE_NOT_YOURS"


class QueueNotGiven(AccessRefused):
    """@{agent} was not given the queue "{queue}". The owner adds it to the setting agents.{agent}.queues."""

    code = "QUEUE_NOT_YOURS"


class ReviewForPeople(AccessRefused):
    """The review {message_id} is for people: {who} may not answer, fail or put it off."""

    code = "REVIEW_FOR_PEOPLE"


class NoSuchThing(NotFound):
    """There is no {what} "{id}"."""

    def __init__(self, *, what: str, id: str) -> None:  # noqa: A002 - as the sentence names it
        super().__init__(what=what, id=id)
        self.code = f"{what.upper().replace(' ', '_').replace('-', '_')}_NOT_FOUND"  # type: ignore[misc]
