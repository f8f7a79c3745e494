"""Bytes into lines, with a limit on each line, so that a runaway program cannot fill the memory."""


class LineSplitter:
    """Splits at newlines only: JSON strings may hold other separators. Lines over the limit are dropped."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._held = 0
        self._dropping = False
        self.dropped = 0

    def feed(self, data: bytes) -> list[str]:
        *complete, rest = data.split(b"\n")
        lines: list[str] = []
        for piece in complete:
            self._hold(piece)
            lines.extend(self.rest())
        self._hold(rest)
        return lines

    def rest(self) -> list[str]:
        """The line held so far, as at the end of the output, where the newline may be missing."""
        line = b"".join(self._parts).strip()
        self._parts, self._held, self._dropping = [], 0, False
        return [line.decode(errors="replace")] if line else []

    def _hold(self, piece: bytes) -> None:
        if self._dropping or not piece:
            return
        self._held += len(piece)
        if self._held > self._limit:
            self._parts, self._dropping = [], True
            self.dropped += 1
        else:
            self._parts.append(piece)
