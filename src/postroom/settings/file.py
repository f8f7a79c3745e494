"""The settings file: read, repaired when damaged, and changed under a lock so that no change is lost."""

import contextlib
import copy
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from postroom.clock import Clock, SystemClock, iso
from postroom.errors import InvalidField
from postroom.settings import durable, repair, secrets
from postroom.settings.errors import SettingsBroken, SettingsUnwritable

if TYPE_CHECKING:  # who only looks at the document does not wait for the models
    from postroom.settings.model import Settings

Document = dict[str, Any]
Change = Callable[[Document], Document | None]
Signature = tuple[int, int, int, int]

_LOOKS = 20
_PAUSE_S = 0.05
# Disks count time in steps of some milliseconds: what has changed just now may change again unseen.
_FRESH_NS = 100_000_000

_log = logging.getLogger("postroom.settings")


class _Known(NamedTuple):
    """What was read last. Without a signature, the file may have changed again in the same moment."""

    signature: Signature | None
    document: Document
    settings: "Settings"


class SettingsFile:
    """`path` need not exist yet. `tell` hears what a person should know about a repair."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        tell: Callable[[str], None] = _log.warning,
        patience_s: float = 10.0,
    ) -> None:
        self.path = Path(path)
        self._clock = clock or SystemClock()
        self._tell = tell
        self._patience_s = patience_s
        self._known: _Known | None = None
        self._was_there = False

    def load(self) -> "Settings":
        """The settings as they are on the disk now; the same object as long as they are the same."""
        signature, now = self._signature(), time.time_ns()
        known = self._known
        if known is not None and known.signature is not None and known.signature == signature:
            return known.settings
        # Kept under the signature from before the reading: a change in between is seen next time.
        settled = signature is not None and now - max(signature[1:3]) > _FRESH_NS
        return self._learn(self._read(), signature if settled else None)

    def _learn(self, document: Document, signature: Signature | None = None) -> "Settings":
        known = self._known
        same = known is not None and known.document == document
        settings = known.settings if known and same else _parse(document, self.path)
        self._known = _Known(signature, document, settings)
        return settings

    def document(self) -> Document:
        """What the file holds, unknown fields and secrets included. Never show it; show `masked()`."""
        return self._read()

    def masked(self) -> Document:
        return secrets.masked(self._read())

    def update(self, change: Change) -> "Settings":
        """Reads, lets `change` edit the document or return another, checks and writes it: all under the lock.

        If `change` raises or its result is not valid, the file stays as it is. A mask in the result stands
        for the secret that is stored.
        """
        with self._locked():
            stored = self._read_repaired()
            wanted, settings = self._edit(stored, change)
            if wanted != stored or not self.path.exists():
                self._write(wanted)
            return settings

    def source_of(self, name: str) -> Literal["file", "store"]:
        """Where what is set of a setting is kept."""
        return "file"

    def _edit(self, stored: Document, change: Change) -> "tuple[Document, Settings]":
        edited = copy.deepcopy(stored)
        returned = change(edited)
        edited = edited if returned is None else returned
        if repair.too_deep(edited):
            raise InvalidField("settings", "are nested too deeply")
        wanted = secrets.unmasked(edited, stored)
        return wanted, _parse(wanted, self.path)

    def merge(self, fields: Mapping[str, Any]) -> "Settings":
        """Replaces whole top-level fields; a null removes one."""

        def change(document: Document) -> None:
            for name, value in fields.items():
                if value is None:
                    document.pop(name, None)
                else:
                    document[name] = value

        return self.update(change)

    def replace(self, document: Mapping[str, Any]) -> "Settings":
        return self.update(lambda _: dict(document))

    def _signature(self) -> Signature | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size

    def _read(self) -> Document:
        try:
            return _sound(self._filled())
        except ValueError:
            pass
        try:
            with self._locked():
                return self._read_repaired()
        except SettingsUnwritable as error:
            document, what = self._repaired(self._settled())
            self._tell(f"{self.path} is damaged ({what}). It was read as far as possible. {error}")
            return document

    def _read_repaired(self) -> Document:
        data = self._filled()
        try:
            return _sound(data)
        except ValueError:
            data = self._settled()
        with contextlib.suppress(ValueError):
            return _sound(data)
        document, what = self._repaired(data)
        try:
            kept = durable.keep_copy(self._target(), data, f"broken-{_stamp(self._clock.now())}")
        except OSError as error:
            raise SettingsUnwritable(path=str(self.path), reason=_reason(error)) from None
        self._write(document)
        self._tell(f"{self.path} was damaged and is repaired: {what}. The damaged file is kept as {kept}.")
        return document

    def _repaired(self, data: bytes) -> tuple[Document, str]:
        try:
            repaired = repair.repair(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise SettingsBroken(path=str(self.path), problem="it is not text in UTF-8") from None
        except repair.BeyondRepair as error:
            raise SettingsBroken(path=str(self.path), problem=str(error)) from None
        return repaired.document, "; ".join(repaired.notes)

    def _filled(self) -> bytes:
        """What the file holds. Empty, or gone after it was there, it may just be written anew by others."""
        data = self._bytes()
        if not data.strip() and (self._was_there or self.path.exists()):
            data = self._settled()
        self._was_there = bool(data.strip())
        return data

    def _settled(self) -> bytes:
        """The file once it stands still: other programs write it in place, and half of it looks damaged."""
        data = self._bytes()
        for _ in range(_LOOKS):
            time.sleep(_PAUSE_S)
            data, before = self._bytes(), data
            if data == before:
                break
        return data

    def _bytes(self) -> bytes:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise SettingsBroken(path=str(self.path), problem=_reason(error)) from None

    def _write(self, document: Document) -> None:
        try:
            data = _encoded(document)
        except (TypeError, ValueError, RecursionError):
            raise InvalidField("settings", "hold something that cannot be written as JSON") from None
        try:
            durable.clear_leftovers(self._target())
            durable.replace(self._target(), data)
        except OSError as error:
            raise SettingsUnwritable(path=str(self.path), reason=_reason(error)) from None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            try:
                self._target().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                stack.enter_context(durable.locked(self._target(), self._patience_s))
            except OSError as error:
                raise SettingsUnwritable(path=str(self.path), reason=_reason(error)) from None
            yield

    def _target(self) -> Path:
        # A link to the settings stays a link; what it leads to is replaced.
        return Path(os.path.realpath(self.path))


def _parse(document: Document, path: Path) -> "Settings":
    from postroom.settings.model import parse

    return parse(document, path)


def _sound(data: bytes) -> Document:
    text = data.decode("utf-8-sig")
    return repair.read(text) if text.strip() else {}


def _encoded(document: Document) -> bytes:
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        return (text + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()


def _stamp(now: int) -> str:
    return iso(now).partition(".")[0].replace("-", "").replace(":", "") + "Z"


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
