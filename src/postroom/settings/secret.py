"""A secret as a field of the settings."""

from collections.abc import Mapping

from pydantic import SecretStr

from postroom.settings.secrets import is_handle, reveal


class Secret(SecretStr):
    """A secret or its handle, as it stands in the file. It prints as a mask; `reveal` gives the secret."""

    @property
    def handle(self) -> str | None:
        value = self.get_secret_value()
        return value if is_handle(value) else None

    def reveal(self, environment: Mapping[str, str] | None = None) -> str:
        return reveal(self.get_secret_value(), environment)
