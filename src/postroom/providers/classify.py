"""From what a provider says about its failure (status, code, words) to the kind of failure it is.

Words decide before the status where one status stands for several kinds, since programs change their wording
weekly but keep these phrases.
"""

import re

from postroom.providers.protocol import Cause, ErrorKind

Class = tuple[ErrorKind, Cause]

_QUOTA = (ErrorKind.AUTH, Cause.QUOTA)
_CONTEXT = (ErrorKind.CONTEXT_TOO_LONG, Cause.UNKNOWN)
_AUTH = (ErrorKind.AUTH, Cause.UNKNOWN)
_RATE = (ErrorKind.RATE_LIMIT, Cause.UNKNOWN)
_OVERLOADED = (ErrorKind.OVERLOADED, Cause.UNKNOWN)
_SERVER = (ErrorKind.OVERLOADED, Cause.SERVER)
_NETWORK = (ErrorKind.OVERLOADED, Cause.NETWORK)
_STREAM_CUT = (ErrorKind.OVERLOADED, Cause.STREAM_CUT)
_REFUSED = (ErrorKind.REFUSED, Cause.UNKNOWN)
_MODEL = (ErrorKind.INVALID, Cause.MODEL)

_BEFORE_STATUS: tuple[tuple[re.Pattern[str], Class], ...] = (
    (
        re.compile(
            r"credit balance is too low|insufficient_quota|quota exceeded|exceeded your current quota"
            r"|billing_error",
            re.I,
        ),
        _QUOTA,
    ),
    (
        re.compile(
            r"prompt is too long|context_length_exceeded|contextoverflow|maximum context length"
            r"|ran out of room in the model|exceeds? the (model's )?context|context window (is )?exceeded"
            r"|context_window_exceeded",
            re.I,
        ),
        _CONTEXT,
    ),
    (
        re.compile(
            r"no conversation found with session id|no rollout found for thread id|session not found", re.I
        ),
        (ErrorKind.INVALID, Cause.SESSION_LOST),
    ),
    (
        re.compile(r"output token maximum|reason: max_output_tokens", re.I),
        (ErrorKind.INVALID, Cause.TOKEN_LIMIT),
    ),
    (
        re.compile(
            r"not logged in|please run /login|invalid api key|incorrect api key|invalid x-api-key"
            r"|invalid_api_key|401 unauthorized|403 forbidden|authentication_(failed|error)"
            r"|failed to authenticate|missing environment variable|token (has )?expired|api key not valid",
            re.I,
        ),
        _AUTH,
    ),
    (
        re.compile(
            r"issue with the selected model|model[^.\n]{0,80}(does not exist|not found)|model_not_found", re.I
        ),
        _MODEL,
    ),
    (re.compile(r"content_filter|content_policy|usage policy|reason: content", re.I), _REFUSED),
)
_TOO_BUSY = re.compile(r"overloaded|high demand|at capacity|service unavailable|\b5(03|29)\b", re.I)
_AFTER_STATUS: tuple[tuple[re.Pattern[str], Class], ...] = (
    (
        re.compile(
            r"429 too many|too many requests|rate[ _]limit|usage limit|hit your (usage )?limit|limit reached",
            re.I,
        ),
        _RATE,
    ),
    (_TOO_BUSY, _OVERLOADED),
    (re.compile(r"server_error|internal server error|bad gateway|\b5(00|02|04)\b", re.I), _SERVER),
    (re.compile(r"stream disconnected", re.I), _STREAM_CUT),
    (
        re.compile(
            r"connection ?(refused|error|reset|closed)|econnrefused|econnreset|enotfound|eai_again"
            r"|fetch failed|waiting for network|unable to connect|network error|request timed out",
            re.I,
        ),
        _NETWORK,
    ),
    (re.compile(r"\brefus(al|ed to answer)\b", re.I), _REFUSED),
)
_BY_STATUS: dict[int, Class] = {
    401: _AUTH,
    402: _QUOTA,
    403: _AUTH,
    404: _MODEL,
    408: (ErrorKind.OVERLOADED, Cause.NETWORK),
    409: _OVERLOADED,
    413: _CONTEXT,
    429: _RATE,
}
# Codes that HTTP APIs put into the body, also of a stream that began with status 200.
_BY_CODE: dict[str, int] = {
    "authentication_error": 401,
    "authentication_failed": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit": 429,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded": 529,
    "overloaded_error": 529,
    "server_is_overloaded": 529,
}
_STATUS_IN_TEXT = re.compile(r"(?:unexpected status|last status:|API Error:|status code)\s+(\d{3})\b", re.I)


def classify(text: str, status: int | None = None, code: str = "") -> Class | None:
    """The kind of failure, or None when nothing is recognised."""
    for pattern, found in _BEFORE_STATUS:
        if pattern.search(text) or (code and pattern.search(code)):
            return found
    by_status = (
        classify_status(status) or classify_status(_BY_CODE.get(code)) or classify_status(_status_in(text))
    )
    if by_status == _SERVER and _TOO_BUSY.search(text):
        return _OVERLOADED
    if by_status:
        return by_status
    for pattern, found in _AFTER_STATUS:
        if pattern.search(text):
            return found
    return None


def classify_status(status: int | None) -> Class | None:
    if status is None or status < 400:
        return None
    if status >= 500:
        return _OVERLOADED if status in (503, 529) else _SERVER
    return _BY_STATUS.get(status, (ErrorKind.INVALID, Cause.UNKNOWN))


def _status_in(text: str) -> int | None:
    match = _STATUS_IN_TEXT.search(text)
    return int(match[1]) if match else None
