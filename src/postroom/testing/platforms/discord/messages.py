"""Messages on Discord: what bots may send, and all of every channel for those who fetch what they missed."""

from collections.abc import Sequence
from typing import Any

from postroom.clock import SECOND, iso
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.discord.objects import DiscordChannel, SnowflakeMint
from postroom.testing.platforms.http import CallParameters, NotImplementedByFake, Refusal
from postroom.testing.platforms.transcript import Attachment, Delivery, OfferedButton, Transcript

CONTENT_LIMIT = 2000
UPLOAD_BYTES = 10 * 1024 * 1024
FILES_LIMIT = 10
BUTTONS_IN_A_ROW = 5
ROWS = 5
# «Checked for uniqueness in the past few minutes»: five stand for a few.
NONCE_KEPT = 300 * SECOND
EPHEMERAL, SUPPRESS_EMBEDS = 1 << 6, 1 << 2
DEFAULT, REPLY = 0, 19
ACTION_ROW, BUTTON, LINK_STYLE = 1, 2, 5


class ChannelMessages:
    def __init__(
        self, clock: HeldClock, mint: SnowflakeMint, transcript: Transcript, bot: dict[str, Any]
    ) -> None:
        self._clock = clock
        self._mint = mint
        self._transcript = transcript
        self._bot = bot
        self._of_channel: dict[str, list[dict[str, Any]]] = {}
        self._files: dict[str, Attachment] = {}
        self._nonces: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
        self.cdn = ""

    def add(
        self,
        channel: DiscordChannel,
        author: dict[str, Any],
        content: str,
        attachments: Sequence[Attachment] = (),
        reply_to: dict[str, Any] | None = None,
        components: Sequence[Any] = (),
        nonce: str | None = None,
        flags: int = 0,
        mentions: Sequence[dict[str, Any]] = (),
    ) -> dict[str, Any]:
        message: dict[str, Any] = {
            "id": self._mint.mint(),
            "channel_id": channel.id,
            "author": author,
            "content": content,
            "timestamp": iso(self._clock.now()),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": list(mentions),
            "mention_roles": [],
            "attachments": [self._store(channel, attachment) for attachment in attachments],
            "embeds": [],
            "pinned": False,
            "type": DEFAULT if reply_to is None else REPLY,
            "components": list(components),
            "flags": flags,
        }
        if nonce is not None:
            message["nonce"] = nonce
        if reply_to is not None:
            message["message_reference"] = {"type": 0, "channel_id": channel.id, "message_id": reply_to["id"]}
            message["referenced_message"] = {k: v for k, v in reply_to.items() if k != "referenced_message"}
        self._of_channel.setdefault(channel.id, []).append(message)
        return message

    def send(
        self, channel: DiscordChannel, parameters: CallParameters, **extra: Any
    ) -> tuple[dict[str, Any], bool]:
        """The message of a call, and whether it is new: with a nonce that was seen it is the earlier one."""
        nonce, enforced = parameters.get("nonce"), parameters.flag("enforce_nonce")
        reference = parameters.structure("message_reference")
        draft = self._read(parameters)
        reply_to = None
        if reference is not None:
            reply_to = self.find(channel.id, str(reference["message_id"]))
            if reply_to is None and reference.get("fail_if_not_exists", True):
                unknown = {"_errors": [{"code": "REPLIES_UNKNOWN_MESSAGE", "message": "Unknown message"}]}
                raise invalid_form({"message_reference": unknown})
        if channel.closed:
            raise Refusal(403, "Cannot send messages to this user", code=50007)
        known = self._nonces.get((channel.id, str(nonce)))
        if enforced and known is not None and self._clock.now() - known[0] < NONCE_KEPT:
            return known[1], False
        message = self.add(channel, self._bot, reply_to=reply_to, nonce=nonce, **draft)
        if nonce is not None:
            self._nonces[channel.id, str(nonce)] = (self._clock.now(), message)
        in_thread = channel.parent is not None
        self._transcript.add(
            Delivery(
                id=message["id"],
                chat=channel.id,
                text=message["content"],
                at=self._clock.now(),
                thread=channel.id if in_thread else None,
                reply_to=None if reply_to is None else reply_to["id"],
                buttons=_list_buttons(message["components"]),
                attachments=tuple(draft["attachments"]),
                extra={**extra, "ephemeral": bool(draft["flags"] & EPHEMERAL), "nonce": nonce},
            )
        )
        return message, True

    def edit(self, channel_id: str, message_id: str, parameters: CallParameters) -> dict[str, Any]:
        message = self.get(channel_id, message_id)
        if message["author"]["id"] != self._bot["id"]:
            raise Refusal(403, "Cannot edit a message authored by another user", code=50005)
        draft = self._read(parameters, before=message)
        if draft["attachments"]:
            raise NotImplementedByFake("an edit that adds files")
        message |= {
            "content": draft["content"],
            "components": draft["components"],
            "edited_timestamp": iso(self._clock.now()),
        }
        delivery = self._transcript.find(channel_id, message_id)
        assert delivery is not None
        if delivery.text != draft["content"]:
            delivery.edits.append(delivery.text)
        delivery.text, delivery.buttons = draft["content"], _list_buttons(draft["components"])
        self._transcript.note_change()
        return message

    def delete(self, channel_id: str, message_id: str) -> None:
        message = self.get(channel_id, message_id)
        self._of_channel[channel_id].remove(message)
        if delivery := self._transcript.find(channel_id, message_id):
            delivery.deleted = True
            self._transcript.note_change()

    def find(self, channel_id: str, message_id: str) -> dict[str, Any] | None:
        return next((m for m in self._of_channel.get(channel_id, []) if m["id"] == message_id), None)

    def get(self, channel_id: str, message_id: str) -> dict[str, Any]:
        message = self.find(channel_id, message_id)
        if message is None:
            raise Refusal(404, "Unknown Message", code=10008)
        return message

    def history(self, channel_id: str, parameters: CallParameters) -> list[dict[str, Any]]:
        """Newest first, whichever way it was asked for."""
        limit = parameters.number("limit", 50)
        after, before = parameters.number("after"), parameters.number("before")
        if not 1 <= limit <= 100:
            raise invalid_form({"limit": {"_errors": [{"code": "NUMBER_TYPE_MAX", "message": "1 to 100"}]}})
        messages = self._of_channel.get(channel_id, [])
        if after:
            chosen = [m for m in messages if int(m["id"]) > after][:limit]
        else:
            chosen = [m for m in messages if not before or int(m["id"]) < before][-limit:]
        return chosen[::-1]

    def file_at(self, path: str) -> Attachment | None:
        return self._files.get(path)

    def _read(self, parameters: CallParameters, before: dict[str, Any] | None = None) -> dict[str, Any]:
        before = before or {"content": "", "components": [], "flags": 0}
        content = parameters.text("content", before["content"])
        components = parameters.structure("components", before["components"])
        attachments = list(parameters.files.values())
        flags = parameters.number("flags", before["flags"])
        described = parameters.structure("attachments", [])
        parameters.ignore("allowed_mentions")
        if flags & ~(EPHEMERAL | SUPPRESS_EMBEDS):
            raise NotImplementedByFake(f"message flags {flags}")
        for absent in ("tts", "embeds", "sticker_ids", "poll"):
            if parameters.get(absent):
                raise NotImplementedByFake(f"messages with {absent}")
        parameters.check_read("a message")
        if len(described) > len(attachments) and not before.get("id"):
            raise invalid_form(
                {"attachments": {"_errors": [{"code": "ATTACHMENT_NOT_FOUND", "message": ""}]}}
            )
        if len(content) > CONTENT_LIMIT:
            length = {"code": "BASE_TYPE_MAX_LENGTH", "message": "Must be 2000 or fewer in length."}
            raise invalid_form({"content": {"_errors": [length]}})
        if not content.strip() and not components and not attachments:
            raise Refusal(400, "Cannot send an empty message", code=50006)
        if len(attachments) > FILES_LIMIT:
            raise invalid_form(
                {"files": {"_errors": [{"code": "BASE_TYPE_MAX_LENGTH", "message": "10 at most"}]}}
            )
        if sum(len(attachment.content) for attachment in attachments) > UPLOAD_BYTES:
            raise Refusal(413, "Request entity too large", code=40005)
        _check_components(components)
        return {"content": content, "components": components, "attachments": attachments, "flags": flags}

    def _store(self, channel: DiscordChannel, attachment: Attachment) -> dict[str, Any]:
        attachment_id = self._mint.mint()
        path = f"{channel.id}/{attachment_id}/{attachment.name}"
        self._files[path] = attachment
        url = f"{self.cdn}/attachments/{path}"
        return {
            "id": attachment_id,
            "filename": attachment.name,
            "size": len(attachment.content),
            "url": url,
            "proxy_url": url,
            "content_type": attachment.media_type,
        }


def invalid_form(errors: dict[str, Any]) -> Refusal:
    return Refusal(400, "Invalid Form Body", code=50035, errors=errors)


def _check_components(components: Sequence[Any]) -> None:
    if len(components) > ROWS:
        raise invalid_form(
            {"components": {"_errors": [{"code": "BASE_TYPE_BAD_LENGTH", "message": "1 to 5"}]}}
        )
    for row in components:
        if row["type"] != ACTION_ROW or any(item["type"] != BUTTON for item in row["components"]):
            raise NotImplementedByFake("components other than rows of buttons")
        buttons = row["components"]
        fits = all(len(b.get("custom_id", "")) <= 100 and len(b.get("label", "")) <= 80 for b in buttons)
        if not fits or not 1 <= len(buttons) <= BUTTONS_IN_A_ROW:
            problem = {"code": "BASE_TYPE_BAD_LENGTH", "message": "Must be between 1 and 5 in length."}
            raise invalid_form({"components": {"_errors": [problem]}})


def _list_buttons(components: Sequence[Any]) -> tuple[OfferedButton, ...]:
    return tuple(
        OfferedButton(button.get("label", ""), button.get("custom_id") or button.get("url", ""))
        for row in components
        for button in row["components"]
        if not button.get("disabled")
    )
