"""What a platform can do, in one table. What it cannot is replaced by rule (see degradation)."""

from collections.abc import Callable

import msgspec

from postroom.channels.styled_text import StyledText


def count_plain(styled: StyledText) -> int:
    return len(styled.plain())


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Zero, false or none: the platform does not have it."""

    text_limit: int
    # How long the platform counts a styled text, with its own markup.
    measure: Callable[[StyledText], int] = count_plain
    markup: bool = False
    buttons: int = 0
    button_chars: int = 0
    threads: bool = False
    replies: bool = False
    file_bytes: int = 0
    edits: bool = False
    # How commands begin: some platforms keep the slash for themselves.
    command_sign: str = "/"
    # How often the sign that somebody types must be renewed.
    typing_s: float | None = None
    # Sending again under the same key does nothing twice, so an ambiguous piece may be repeated.
    repeatable: bool = False
    # How long it knows keys; none: for ever.
    repeatable_s: float | None = None
