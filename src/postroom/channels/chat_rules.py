"""How a channel treats its chats, unless a chat has chosen otherwise."""

from collections.abc import Callable

import msgspec

from postroom.office.chat_preferences import BusyMode, NoiseLevel


class ChatRules(msgspec.Struct, frozen=True, kw_only=True):
    """None: as the office does it anyway."""

    busy: BusyMode = BusyMode.QUEUE
    noise: NoiseLevel | None = None
    signature: bool | None = None
    # Who gets what is addressed to nobody.
    default_agent: str | None = None
    # Who gets everything that guests write.
    agent_of_guests: Callable[[], str | None] = lambda: None
    # After so long without an answer the person gets a word; 0: never.
    long_turn_s: float = 0
    # So many messages of one sender within the window, then a pause.
    loop_events: int = 20
    loop_window_s: float = 60.0
