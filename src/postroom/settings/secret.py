"""A secret as a field of the settings."""

from collections.abc import Mapping

from postroom.settings.secrets import MASK, is_handle, reveal


class Secret:
    """A secret or its handle. It prints as a mask; `reveal` gives the secret."""

    __slots__ = ("written",)

    def __init__(self, written: str) -> None:
        self.written = written
        """As it stands in the file: never show it."""

    @property
    def handle(self) -> str | None:
        return self.written if is_handle(self.written) else None

    def reveal(self, environment: Mapping[str, str] | None = None) -> str:
        return reveal(self.written, environment)

    def __bool__(self) -> bool:
        return bool(self.written)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.written == other.written

    def __hash__(self) -> int:
        return hash(self.written)

    def __repr__(self) -> str:
        return f"Secret({MASK!r})" if self.written else "Secret('')"

    def __str__(self) -> str:
        return MASK if self.written else ""
