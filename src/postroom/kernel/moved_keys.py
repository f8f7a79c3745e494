"""Keys of messages that a rule has moved: still unique where the message is now, still known where it was."""

MARK = "\x1f"


def moved_key(queue_id: int, key: str) -> str:
    return key if MARK in key else f"{queue_id}{MARK}{key}"


def shown_key(key: str | None) -> str | None:
    return key if key is None else key.rpartition(MARK)[2]
