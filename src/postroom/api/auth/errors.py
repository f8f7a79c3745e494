"""What a caller is told who may not come in, or not with this."""

from postroom.errors import PostroomError


class EntryRefused(PostroomError):
    """This is not allowed."""

    code = "FORBIDDEN"
    http_status = 403
    exit_code = 3


class HostRefused(EntryRefused):
    """The host name "{host}" is not one of this office. Add it to api.hosts if you call it so yourself."""

    code = "HOST_NOT_ALLOWED"


class OriginRefused(EntryRefused):
    """Pages of {origin} may not use this office. Add the origin to api.origins if you trust it."""

    code = "ORIGIN_NOT_ALLOWED"


class CsrfRefused(EntryRefused):
    """This request did not come from a page of this office. Load the page again and repeat it."""

    code = "CSRF"


class KeyNotHere(EntryRefused):
    """A key opens the work queues only, under /v1 and as tools at /mcp. The office itself needs the owner's
    token."""

    code = "KEY_NOT_HERE"


class AgentNotHere(EntryRefused):
    """The token of @{agent} opens its tools at /mcp, and nothing else."""

    code = "AGENT_NOT_HERE"


class Unauthorized(PostroomError):
    """A token is needed: send "Authorization: Bearer …" with what the file "token" in POSTROOM_HOME holds, or
    log in with a link from the command postroom login."""

    code = "UNAUTHORIZED"
    http_status = 401
    exit_code = 3


class WrongToken(Unauthorized):
    """The token is not valid here. Take the one from the file "token" in POSTROOM_HOME."""


class TooManyAttempts(PostroomError):
    """Too many failed attempts. Wait {seconds} seconds."""

    code = "RATE_LIMITED"
    http_status = 429


class TooManyRequests(PostroomError):
    """More than {limit} requests in a minute. Wait {seconds} seconds."""

    code = "RATE_LIMITED"
    http_status = 429


class HeadersTooLarge(PostroomError):
    """The headers are larger than {limit} bytes."""

    code = "HEADERS_TOO_LARGE"
    http_status = 431


class TurnEnded(Unauthorized):
    """The turn for which @{agent} got this token has ended, and the token with it."""

    code = "TURN_ENDED"


class RequestTooSlow(PostroomError):
    """The request took too long to arrive. Send it again, over a better connection or in smaller parts."""

    code = "REQUEST_TIMEOUT"
    http_status = 408


class TooManyConnections(PostroomError):
    """More than {limit} connections are open from one address. Close some, or use one for many requests."""

    code = "TOO_MANY_CONNECTIONS"
    http_status = 429


class RequestTooLarge(PostroomError):
    """The request is larger than the {limit} bytes that limits.request_bytes allows."""

    code = "REQUEST_TOO_LARGE"
    http_status = 413
