"""The settings of an office on a database server: what is the host's in its file, all else in the store.

The office's part is one document, changed only in place of the version that was read, with its secrets
sealed. It keeps no earlier versions, and the ledger tells no more of it than that it was changed.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from postroom.errors import DocumentChanged
from postroom.kernel import commands as c
from postroom.kernel.access.keys import NOBODY
from postroom.kernel.reader import Reader
from postroom.runtime import SyncRoom
from postroom.settings.errors import SettingsContended, TokenDiffers
from postroom.settings.file import Change, Document, SettingsFile
from postroom.settings.host_part import combine, is_of_host, split
from postroom.settings.sealing import SettingsKey, drop_sealed
from postroom.settings.secrets import map_texts

if TYPE_CHECKING:
    from postroom.settings.model import Settings

KIND = "office_settings"
KEY = "office"
TRIES = 20


class SealedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The document as the store has it; `salt` and `check` are of the key of its secrets."""

    salt: str
    check: str
    settings: dict[str, Any]


def read_sealed(reader: Reader) -> tuple[int, SealedSettings] | None:
    """With its version; None where no office has put its settings."""
    found = reader.document(NOBODY, KIND, KEY)
    if found is None or found.gone:
        return None
    return found.version, msgspec.convert(found.data, SealedSettings)


def drop_settings(room: SyncRoom) -> None:
    """From a store that is a file now."""
    room.run(c.DropDocument(kind=KIND, key=KEY, tenant=NOBODY, actor=room.actor))


def open_key(sealed: SealedSettings, token: str) -> SettingsKey:
    key = SettingsKey(token, bytes.fromhex(sealed.salt))
    if key.check != sealed.check:
        raise TokenDiffers
    return key


class _OfficePart:
    """What the store held when it was last looked at."""

    def __init__(self, version: int, key: SettingsKey | None, document: Document) -> None:
        self.version = version
        self.key = key
        self.document = document


FindToken = Callable[[bool], str]
"""The owner's token. Told that the office is new, it makes one where there is none."""


class SharedSettings(SettingsFile):
    """`open_room` is asked when the store is needed. Where it has no settings yet, those of the file hold,
    and the first change puts them there."""

    def __init__(
        self, path: Path, open_room: Callable[[], SyncRoom], find_token: FindToken, **options: Any
    ) -> None:
        super().__init__(path, **options)
        self._open_room = open_room
        self._find_token = find_token
        self._office: _OfficePart | None = None

    def load(self) -> "Settings":
        return self._learn(self._read())

    def source_of(self, name: str) -> Literal["file", "store"]:
        return "file" if is_of_host(name) or self._office is None else "store"

    def establish(self, defaults: Document, open_handle: Callable[[str], str] = str) -> bool:
        """The settings of the file, or else the defaults, are put into the store unless it has some; whether
        they were. `open_handle` gives what stands for a handle that only this host can follow."""
        with self._locked():
            office = self._fetch()
            if office.version:
                return False
            try:
                document = office.document or split(defaults)[1]
                self._put(map_texts(document, lambda text, path, secret: open_handle(text)), office)
            except DocumentChanged:
                self._fetch()  # by a token that must be ours too
                return False
            return True

    def update(self, change: Change) -> "Settings":
        with self._locked():
            for _ in range(TRIES):
                file, office = self._read_repaired(), self._fetch()
                wanted, settings = self._edit(combine(file, office.document), change)
                host, shared = split(wanted)
                try:
                    if shared != office.document:
                        self._put(shared, office)
                except DocumentChanged:
                    continue
                self._write_host(file, host)
                return settings
        raise SettingsContended

    def reseal(self, token: str) -> None:
        """With a key of another token. Who has the old one reads no secret from now on."""
        with self._locked():
            for _ in range(TRIES):
                office = self._fetch()
                try:
                    self._put(office.document, office, SettingsKey.new(token))
                except DocumentChanged:
                    continue
                return
        raise SettingsContended

    def give_up_secrets(self, token: str) -> list[str]:
        """For an owner who has lost the token: all else is kept, under a new one. The names of the lost."""
        with self._locked():
            for _ in range(TRIES):
                found = self._open_room().look(read_sealed)
                if found is None:
                    return []
                version, sealed = found
                document, lost = drop_sealed(sealed.settings)
                try:
                    self._put(document, _OfficePart(version, None, document), SettingsKey.new(token))
                except DocumentChanged:
                    continue
                return lost
        raise SettingsContended

    def _read(self) -> Document:
        return combine(super()._read(), self._fetch().document)

    def _fetch(self) -> _OfficePart:
        found = self._open_room().look(read_sealed)
        if found is None:
            self._office = None
            return _OfficePart(0, None, split(super()._read())[1])
        version, sealed = found
        known = self._office
        if known is None or known.version != version:
            key = known.key if known is not None else None
            if key is None or (key.salt.hex(), key.check) != (sealed.salt, sealed.check):
                key = open_key(sealed, self._find_token(False))
            self._office = known = _OfficePart(version, key, key.unseal(sealed.settings))
        return known

    def _put(self, document: Document, before: _OfficePart, key: SettingsKey | None = None) -> None:
        key = key or before.key or SettingsKey.new(self._find_token(True))
        sealed = SealedSettings(salt=key.salt.hex(), check=key.check, settings=key.seal(document))
        room = self._open_room()
        room.run(
            c.PutDocument(
                kind=KIND,
                key=KEY,
                data=msgspec.to_builtins(sealed),
                expect=before.version,
                history=False,
                tenant=NOBODY,
                actor=room.actor,
            )
        )

    def _write_host(self, file: Document, host: Document) -> None:
        """What else stands in the file stays, for a version that still reads it."""
        if host != split(file)[0]:
            self._write(combine(host, split(file)[1]))
