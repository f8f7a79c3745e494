"""Messages on Slack: what apps may post, and every message of every channel by its timestamp."""

from typing import Any

from postroom.clock import SECOND
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.http import CallParameters, NotImplementedByFake, Refusal
from postroom.testing.platforms.transcript import Attachment, Delivery, OfferedButton, Transcript

TEXT_LIMIT = 40_000
SECTION_LIMIT = 3000
MARKDOWN_LIMIT = 12_000
BLOCKS = 50
BUTTON_LIMIT = 75
BLOCK_TYPES = {"section", "actions", "divider", "context", "markdown", "header"}


def slack_error(name: str, **details: Any) -> Refusal:
    """Slack answers errors with status 200."""
    return Refusal(200, name, **details)


class SlackMessages:
    def __init__(self, clock: HeldClock, transcript: Transcript, bot: dict[str, str]) -> None:
        self._clock = clock
        self._transcript = transcript
        self._bot = bot
        self._of_channel: dict[str, list[dict[str, Any]]] = {}
        self._counter = 0

    def add(self, channel: str, message: dict[str, Any]) -> dict[str, Any]:
        """Stores what somebody wrote and gives it the timestamp that is its id within the channel."""
        self._counter += 1
        message = {"type": "message", **message, "ts": f"{self._clock.now() // SECOND}.{self._counter:06d}"}
        self._of_channel.setdefault(channel, []).append(message)
        return message

    def post(
        self, channel: str, parameters: CallParameters, attachments: tuple[Attachment, ...] = ()
    ) -> dict[str, Any]:
        content = self._read(parameters, required=not attachments)
        thread = parameters.get("thread_ts")
        if thread is not None and self.find(channel, thread) is None:
            raise slack_error("thread_not_found")
        metadata = parameters.structure("metadata")
        parameters.ignore("mrkdwn", "unfurl_links", "unfurl_media", "reply_broadcast", "parse", "link_names")
        message = {**self._bot, **content}
        if thread is not None:
            message["thread_ts"] = thread
        if metadata is not None:
            message["metadata"] = metadata
        message = self.add(channel, message)
        self.show(channel, message, attachments)
        return message

    def show(
        self, channel: str, message: dict[str, Any], attachments: tuple[Attachment, ...] = (), **extra: Any
    ) -> None:
        self._transcript.add(
            Delivery(
                id=message["ts"],
                chat=channel,
                text=message["text"],
                at=self._clock.now(),
                thread=message.get("thread_ts"),
                markup=message.get("blocks"),
                buttons=list_buttons(message.get("blocks", [])),
                attachments=attachments,
                extra={"metadata": message.get("metadata"), **extra},
            )
        )

    def update(self, channel: str, ts: str, parameters: CallParameters) -> dict[str, Any]:
        message = self.get_own(channel, ts)
        content = self._read(parameters, required=True)
        parameters.ignore("link_names", "parse")
        self.change(channel, message, content)
        return message

    def change(self, channel: str, message: dict[str, Any], content: dict[str, Any]) -> None:
        message.pop("blocks", None)
        message |= {**content, "edited": {"user": self._bot["user"], "ts": message["ts"]}}
        delivery = self._transcript.find(channel, message["ts"])
        assert delivery is not None
        if delivery.text != message["text"]:
            delivery.edits.append(delivery.text)
        delivery.text, delivery.markup = message["text"], message.get("blocks")
        delivery.buttons = list_buttons(message.get("blocks", []))
        self._transcript.note_change()

    def delete(self, channel: str, ts: str) -> None:
        self._of_channel[channel].remove(self.get_own(channel, ts))
        if delivery := self._transcript.find(channel, ts):
            delivery.deleted = True
            self._transcript.note_change()

    def find(self, channel: str, ts: str) -> dict[str, Any] | None:
        return next((m for m in self._of_channel.get(channel, []) if m["ts"] == ts), None)

    def get_own(self, channel: str, ts: str) -> dict[str, Any]:
        message = self.find(channel, ts)
        if message is None:
            raise slack_error("message_not_found")
        if message.get("user") != self._bot["user"]:
            raise slack_error("cant_update_message")
        return message

    def history(self, channel: str, parameters: CallParameters, thread: str | None = None) -> dict[str, Any]:
        """A channel's own messages, newest first; of a thread all, oldest first."""
        oldest, latest = float(parameters.get("oldest", 0)), float(parameters.get("latest", "inf"))
        inclusive, limit = parameters.flag("inclusive"), parameters.number("limit", 100)
        offset = parameters.number("cursor")
        with_metadata = parameters.flag("include_all_metadata")
        messages = [
            message if with_metadata else {k: v for k, v in message.items() if k != "metadata"}
            for message in self._of_channel.get(channel, [])
            if oldest < float(message["ts"]) < latest
            or (inclusive and float(message["ts"]) in (oldest, latest))
        ]
        if thread is None:
            own = [m for m in messages if m.get("thread_ts", m["ts"]) == m["ts"]][::-1]
            messages = [self._with_replies(channel, message) for message in own]
        else:
            messages = [m for m in messages if thread in (m["ts"], m.get("thread_ts"))]
        more = len(messages) > offset + limit
        answer: dict[str, Any] = {"messages": messages[offset : offset + limit], "has_more": more}
        if more:
            answer["response_metadata"] = {"next_cursor": str(offset + limit)}
        return answer

    def _with_replies(self, channel: str, message: dict[str, Any]) -> dict[str, Any]:
        """The first message of a thread says how many answers there are, and when the last one came."""
        ts = message["ts"]
        replies = [m for m in self._of_channel[channel] if m.get("thread_ts") == ts and m["ts"] != ts]
        if not replies:
            return message
        counted = {"reply_count": len(replies), "latest_reply": max(reply["ts"] for reply in replies)}
        return {**message, "thread_ts": ts, **counted}

    def _read(self, parameters: CallParameters, *, required: bool) -> dict[str, Any]:
        text = parameters.text("text")
        blocks = parameters.structure("blocks", [])
        if required and not text and not blocks:
            raise slack_error("no_text")
        if len(text) > TEXT_LIMIT:
            raise slack_error("msg_too_long")
        check_blocks(blocks)
        return {"text": text, "blocks": blocks} if blocks else {"text": text}


def check_blocks(blocks: list[dict[str, Any]]) -> None:
    if len(blocks) > BLOCKS:
        raise slack_error("invalid_blocks")
    for block in blocks:
        if block["type"] not in BLOCK_TYPES:
            raise NotImplementedByFake(f"blocks of type {block['type']}")
        text = block.get("text", "")
        length = len(text if isinstance(text, str) else text.get("text", ""))
        if length > (MARKDOWN_LIMIT if block["type"] == "markdown" else SECTION_LIMIT):
            raise slack_error(
                "invalid_blocks", response_metadata={"messages": ["[ERROR] must be less than 3001"]}
            )
        for element in block.get("elements", []) if block["type"] == "actions" else []:
            if element["type"] != "button":
                raise NotImplementedByFake(f"elements of type {element['type']}")
            if len(element["text"]["text"]) > BUTTON_LIMIT:
                raise slack_error("invalid_blocks")


def list_buttons(blocks: list[dict[str, Any]]) -> tuple[OfferedButton, ...]:
    return tuple(
        OfferedButton(element["text"]["text"], element.get("value", ""))
        for block in blocks
        if block["type"] == "actions"
        for element in block["elements"]
    )
