"""For people who write channels: fake platforms that speak the real protocols, under a clock the test holds.

Needs `pip install 'postroom[testing]'`. Postroom itself does not use it. See docs/how-to/test-a-channel.md.
"""

from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.base import FakePlatform, FakePlatformFailure, InboundEvent, Person
from postroom.testing.platforms.discord import FakeDiscord
from postroom.testing.platforms.email import FakeMail
from postroom.testing.platforms.faults import (
    CallHeld,
    ConnectionDropped,
    DeliveredTwice,
    Fault,
    FaultPlan,
    RateLimited,
    ServerFailed,
    SignedWrongly,
)
from postroom.testing.platforms.matrix import FakeMatrix
from postroom.testing.platforms.signal import FakeSignal
from postroom.testing.platforms.slack import FakeSlack
from postroom.testing.platforms.telegram import FakeTelegram
from postroom.testing.platforms.transcript import Act, Attachment, Delivery, OfferedButton, Transcript
from postroom.testing.platforms.webhook import FakeWebhook
from postroom.testing.platforms.whatsapp import FakeWhatsApp
from postroom.testing.platforms.whatsapp.messages import MessageTemplate
from postroom.testing.platforms.whatsapp_personal import FakePersonalWhatsApp

__all__ = [
    "Act",
    "Attachment",
    "CallHeld",
    "ConnectionDropped",
    "DeliveredTwice",
    "Delivery",
    "FakeDiscord",
    "FakeMail",
    "FakeMatrix",
    "FakePersonalWhatsApp",
    "FakePlatform",
    "FakePlatformFailure",
    "FakeSignal",
    "FakeSlack",
    "FakeTelegram",
    "FakeWebhook",
    "FakeWhatsApp",
    "Fault",
    "FaultPlan",
    "HeldClock",
    "InboundEvent",
    "MessageTemplate",
    "OfferedButton",
    "Person",
    "RateLimited",
    "ServerFailed",
    "SignedWrongly",
    "Transcript",
]
