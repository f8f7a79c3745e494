"""The home folder, and where in it everything is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from postroom.errors import PostroomError
from postroom.settings.paths import home_folder

if TYPE_CHECKING:
    from postroom.settings.file import SettingsFile

FOLDERS = ("logs", "files", "run", "backups", "plugins")


class HomeUnusable(PostroomError):
    """The folder {path} cannot be used: {reason}. Choose another with POSTROOM_HOME."""

    code = "HOME_UNUSABLE"
    exit_code = 6


@dataclass(frozen=True)
class Home:
    path: Path

    @classmethod
    def of(cls, environment: Mapping[str, str] | None = None) -> "Home":
        return cls(home_folder(environment))

    @property
    def settings(self) -> "SettingsFile":
        from postroom.settings.file import SettingsFile

        return SettingsFile(self.path / "settings.json")

    @property
    def token(self) -> Path:
        return self.path / "token"

    @property
    def store_url(self) -> str:
        return f"sqlite:///{self.path}/postroom.db"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def secrets(self) -> Path:
        """Of channels, each in a file of its own."""
        return self.path.absolute() / "secrets"

    @property
    def host_file(self) -> Path:
        return self.path / "host.json"

    @property
    def host(self) -> str:
        """What an office on a database server calls this home; nothing where it never was of one."""
        try:
            return str(json.loads(self.host_file.read_bytes())["name"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    @property
    def is_new(self) -> bool:
        return not (self.path / "settings.json").exists()

    def make(self) -> None:
        """For its owner's eyes only."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in FOLDERS:
                (self.path / name).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise HomeUnusable(path=str(self.path), reason=(error.strerror or str(error)).lower()) from None
