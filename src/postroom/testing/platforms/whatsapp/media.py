"""Files on WhatsApp: uploaded under an id, downloaded through a URL that lives five minutes."""

import hashlib
from dataclasses import dataclass

from postroom.clock import SECOND
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.http import Refusal
from postroom.testing.platforms.transcript import Attachment

URL_LIVES = 300 * SECOND


@dataclass(frozen=True)
class StoredMedia:
    id: str
    attachment: Attachment

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.attachment.content).hexdigest()


class MediaStore:
    def __init__(self, clock: HeldClock) -> None:
        self._clock = clock
        self._media: dict[str, StoredMedia] = {}
        self._urls: dict[str, tuple[int, StoredMedia]] = {}

    def add(self, attachment: Attachment) -> StoredMedia:
        stored = StoredMedia(str(880_000_000_000_001 + len(self._media)), attachment)
        self._media[stored.id] = stored
        return stored

    def knows(self, media_id: str) -> bool:
        return media_id in self._media

    def find(self, media_id: str) -> StoredMedia:
        stored = self._media.get(media_id)
        if stored is None:
            message = f"Unsupported get request. Object with ID '{media_id}' does not exist"
            raise Refusal(400, message, code=100)
        return stored

    def delete(self, media_id: str) -> None:
        self.find(media_id)
        del self._media[media_id]

    def open_url(self, stored: StoredMedia) -> str:
        """The last part of a URL from which the file may be downloaded for a while."""
        key = f"{stored.id}-{len(self._urls)}"
        self._urls[key] = (self._clock.now() + URL_LIVES, stored)
        return key

    def at_url(self, key: str) -> StoredMedia | None:
        until, stored = self._urls.get(key, (0, None))
        return stored if self._clock.now() < until else None
