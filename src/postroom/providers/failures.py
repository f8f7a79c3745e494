"""Failures in the words of the person who must act on them, with secrets taken out."""

import re
from collections.abc import Iterable

import msgspec

from postroom.clock import iso
from postroom.providers.protocol import Cause, ErrorKind, Failed

DETAIL_CHARS = 4000
_KEYS = re.compile(r"\b(sk|pk|rk|xai|gsk|ghp|gho|AIza)[-_]?[A-Za-z0-9][A-Za-z0-9_-]{11,}")
_BEARER = re.compile(r"(?i)\b(bearer|x-api-key:?|authorization:?)\s+[A-Za-z0-9._~+/=-]{8,}")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """What a person calls the thing behind a provider, and how it is installed and logged in to."""

    label: str
    install: str
    login: str


class Hints(msgspec.Struct, frozen=True, kw_only=True):
    """What the sentence about a failure may mention."""

    model: str = ""
    session_id: str = ""
    seconds: float = 0.0
    exit: str = ""


_BY_CAUSE: dict[tuple[ErrorKind, Cause], str] = {
    (
        ErrorKind.AUTH,
        Cause.QUOTA,
    ): "The account behind {label} has no credit left. Check its plan and billing.",
    (ErrorKind.OVERLOADED, Cause.NETWORK): (
        "{label} cannot reach its model server. Check the network and the server's address."
    ),
    (ErrorKind.OVERLOADED, Cause.SERVER): (
        "The model server of {label} failed with an error of its own. It may pass; if it does not, the "
        "server's operator must look."
    ),
    (ErrorKind.OVERLOADED, Cause.STREAM_CUT): (
        "The answer of {label} broke off before its end: the model server closed the connection."
    ),
    (ErrorKind.TIMED_OUT, Cause.WALL_CLOCK): (
        "{label} was stopped after {seconds}, the limit for one turn. Ask for less, or raise the limit."
    ),
    (ErrorKind.TIMED_OUT, Cause.IDLE): "{label} gave no sign of life for {seconds} and was stopped.",
    (ErrorKind.INVALID, Cause.SESSION_LOST): (
        '{label} no longer has the session "{session_id}". Start a new one.'
    ),
    (ErrorKind.INVALID, Cause.MODEL): (
        'The model "{model}" is not known to {label}, or this account may not use it. Choose another.'
    ),
    (ErrorKind.INVALID, Cause.PERMISSION): (
        "The agent needed a permission it does not have. Widen its permissions, or ask for something else."
    ),
    (ErrorKind.INVALID, Cause.SANDBOX): (
        "{label} was not started, because its sandbox could not be set up: {reason} "
        "Look at `postroom doctor --security`."
    ),
    (ErrorKind.INVALID, Cause.OUTPUT_LIMIT): "{label} wrote more than one turn may write, and was stopped.",
    (ErrorKind.INVALID, Cause.TOKEN_LIMIT): (
        "The answer of {label} was longer than its model may write at once, and was cut off. Ask for a "
        "shorter one, or for one part after the other."
    ),
    (ErrorKind.INVALID, Cause.TURN_LIMIT): "{label} reached the limit of steps for one turn.",
    (ErrorKind.INVALID, Cause.BUDGET): "{label} reached the money limit of this turn.",
}
_BY_KIND: dict[ErrorKind, str] = {
    ErrorKind.AUTH: "{label} did not accept the credentials. To log in: {login}.",
    ErrorKind.RATE_LIMIT: "{label} has reached its rate limit{until}.",
    ErrorKind.OVERLOADED: "The model servers of {label} are overloaded. Try again later.",
    ErrorKind.CONTEXT_TOO_LONG: (
        "The conversation no longer fits into the model. Start a new session, or send a shorter message."
    ),
    ErrorKind.REFUSED: "The model refused to answer this.",
    ErrorKind.CRASHED: "{label} ended without an answer{exit}.",
    ErrorKind.TIMED_OUT: "{label} took too long and was stopped.",
    ErrorKind.NOT_INSTALLED: "{label} is not installed. Install it with: {install}",
    ErrorKind.INVALID: "{label} rejected the request: {reason}",
}


def failure(
    product: Product,
    kind: ErrorKind,
    *,
    cause: Cause = Cause.UNKNOWN,
    detail: str = "",
    retry_at: int | None = None,
    hints: Hints | None = None,
    secrets: Iterable[str] = (),
) -> Failed:
    hints = hints or Hints()
    detail = redact(tidy(detail), secrets)
    sentence = _BY_CAUSE.get((kind, cause)) or _BY_KIND[kind]
    message = sentence.format(
        label=product.label,
        install=product.install,
        login=product.login,
        until=f" until {iso(retry_at)}" if retry_at else "",
        exit=f" ({hints.exit})" if hints.exit else "",
        seconds=f"{hints.seconds:g} s",
        model=hints.model,
        session_id=hints.session_id,
        reason=_first_line(detail) or "no reason was given.",
    )
    return Failed(kind=kind, message=message, retry_at=retry_at, detail=detail, cause=cause)


def tidy(text: str) -> str:
    """Without colours and control characters, and only the end of what is too long: errors come last."""
    text = _CONTROLS.sub("", _COLOURS.sub("", text)).strip()
    return text if len(text) <= DETAIL_CHARS else "…" + text[-DETAIL_CHARS:]


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    for secret in secrets:
        if len(secret) >= 6:
            text = text.replace(secret, "[secret]")
    return _BEARER.sub(r"\1 [secret]", _KEYS.sub("[secret]", text))


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:300] if lines else ""
