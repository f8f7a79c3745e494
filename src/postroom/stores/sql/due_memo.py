"""When something comes due next, as this process last saw it, so that not every claim has to ask the server.
What another process writes that is due sooner is seen a moment later."""

# In the store's own time: at least, at most, and so many times as long as asking took.
LOOK_US, MOST_US = 50_000, 1_000_000
TIMES = 20


class DueMemo:
    def __init__(self) -> None:
        self._quiet_until = 0

    def is_quiet(self, now: int) -> bool:
        """Whether surely nothing of this process's is due, and others were asked a moment ago."""
        return now < self._quiet_until

    def note(self, now: int, next_at: int | None, took_us: int = 0) -> None:
        """The server was asked, which took so long, and nothing was due."""
        look_at = now + min(max(LOOK_US, TIMES * took_us), MOST_US)
        self._quiet_until = look_at if next_at is None else min(look_at, next_at)

    def expect(self, due_at: int) -> None:
        """This process writes something that comes due then."""
        self._quiet_until = min(self._quiet_until, due_at)
