"""Reads what the bridge tells of a message. People are known by their phone number, as their account is."""

from typing import Any, NamedTuple

from postroom.channels.model import ReceivedFile, ReceivedMessage


class Account(NamedTuple):
    """The linked account, by its number and by the id that groups know it by instead."""

    number: str = ""
    hidden: str = ""

    def is_meant(self, person: str | None) -> bool:
        return bool(person) and person in (self.number, self.hidden)


def read_message(message: dict[str, Any], account: Account) -> ReceivedMessage | None:
    """None for what the owner writes to others from the phone: only notes to oneself are meant for us."""
    own_chat = account.is_meant(message["chat"].partition("@")[0])
    if message["from_me"] and not own_chat:
        return None
    text, file = message.get("text") or "", message.get("file")
    if not text and not file:
        return None
    mentioned = [each for each in message.get("mentions") or () if account.is_meant(each)]
    answered = account.is_meant((message.get("quoted") or {}).get("sender"))
    for person in mentioned:
        text = text.replace(f"@{person}", "", 1)
    return ReceivedMessage(
        message_id=message["id"],
        chat=message["chat"],
        sender_id=message["sender"],
        sender=message.get("name") or message["sender"],
        text=text.strip(),
        files=()
        if not file
        else (ReceivedFile(handle=file["handle"], name=file["name"], size=file.get("size")),),
        addressed=not message["group"] or bool(mentioned) or answered,
        # A quotation names its author too.
        answers=f"{message['id']}/{message['sender_jid']}",
    )
