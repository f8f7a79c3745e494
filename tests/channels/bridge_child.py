"""The bridge with neonize as it is, without a network: python -m tests.channels.bridge_child SESSION

What WhatsApp would tell is handed to neonize's own handlers. `fed` counts those that have returned.
"""

import os
import sys
import threading
from typing import Any

from neonize.client import NewClient
from neonize.events import EVENT_TO_INT, MessageEv
from neonize.proto.Neonize_pb2 import MessageInfo, MessageSource
from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import (
    ContextInfo,
    DocumentMessage,
    ExtendedTextMessage,
    FutureProofMessage,
    Message,
    ReactionMessage,
)
from neonize.utils.jid import build_jid

from postroom.channels.whatsapp_personal.bridge import Bridge, serve

ME, ANN, GROUP = "15550100", "491700001", "120363000000000001"


def describe_info(number: str, *, group: bool = False, hidden: bool = False) -> MessageInfo:
    ann = build_jid(ANN)
    source = MessageSource(
        Chat=build_jid(GROUP, "g.us") if group else ann,
        Sender=build_jid("88000111", "lid") if hidden else ann,
        SenderAlt=ann,
        IsGroup=group,
    )
    source.Sender.Device = 3
    return MessageInfo(MessageSource=source, ID=number, Pushname="Ann", Timestamp=1_800_000_000)


def list_events() -> list[MessageEv]:
    mention = ContextInfo(mentionedJID=[f"{ME}@s.whatsapp.net"])
    mention.stanzaID, mention.participant = "3EB0OLD", f"{ME}:2@s.whatsapp.net"
    document = DocumentMessage(
        fileName="plan.pdf", caption="the plan", fileLength=7, mimetype="application/pdf", mediaKey=b"k"
    )
    inner = FutureProofMessage(message=Message(documentMessage=document))
    return [
        MessageEv(Info=describe_info("ONE"), Message=Message(conversation="hello")),
        MessageEv(Info=describe_info("REACTION"), Message=Message(reactionMessage=ReactionMessage(text="+"))),
        MessageEv(
            Info=describe_info("TWO", group=True, hidden=True),
            Message=Message(
                extendedTextMessage=ExtendedTextMessage(text=f"@{ME} status?", contextInfo=mention)
            ),
        ),
        MessageEv(Info=describe_info("THREE"), Message=Message(documentWithCaptionMessage=inner)),
    ]


def main() -> None:
    client = NewClient(sys.argv[1], uuid="test")
    bridge = Bridge(client)
    fed: list[str] = []

    def feed() -> None:
        tell: Any = client.event.list_func[EVENT_TO_INT[MessageEv]]
        for event in list_events():
            tell(client, event)
            fed.append(event.Info.ID)

    bridge.methods["fed"] = lambda: fed
    threading.Thread(target=feed, daemon=True).start()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(bridge, sys.stdin.buffer, answers)
    os._exit(0)


if __name__ == "__main__":
    main()
