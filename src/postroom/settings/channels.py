"""The settings of channels: what all have, and what each platform needs besides.

A second bot of a platform is a section of another name with `platform`, and is in `enabled` like the first.
"""

from typing import Annotated, Literal

from pydantic import Field

from postroom.settings.base_urls import BaseUrl
from postroom.settings.part import SharedPart
from postroom.settings.secret import Secret

Port = Annotated[int, Field(ge=1, le=65535)]


class ChannelPart(SharedPart):
    """What every channel has."""

    platform: str | None = Field(default=None, description="Of a second bot: the platform it is on")
    max_age_hours: Annotated[float, Field(gt=0)] = Field(
        default=24, description="An answer older than this is not sent any more, but a dead letter"
    )
    default_agent: str | None = Field(
        default=None, description="Who gets what is addressed to nobody; guests write to nobody else"
    )
    busy: Literal["queue", "collect", "interrupt", "steer"] | None = Field(
        default=None,
        description="What becomes of a message while the agent works for the same person; `queue` if not set",
    )
    noise: Literal["final", "progress", "steps"] | None = Field(
        default=None, description="What people hear besides the answer"
    )
    signature: bool | None = Field(default=None, description="Whether answers end with the agent's name")
    long_turn_minutes: Annotated[float, Field(ge=0)] = Field(
        default=5, description="After so long a word that it is still worked on; 0: none"
    )
    loop_events: Annotated[int, Field(ge=0)] = Field(
        default=20, description="So many messages of one sender in a minute, then a minute's pause; 0: none"
    )


class BotChannel(ChannelPart):
    bot_token: Secret | None = Field(default=None, description="The bot's token, from the platform")


class DiscordChannelSettings(BotChannel):
    base_url: BaseUrl | None = Field(default=None, description="Of a proxy, instead of Discord's API")
    gateway_url: str | None = Field(default=None, description="Of a proxy, instead of Discord's gateway")


class TelegramChannelSettings(BotChannel):
    base_url: BaseUrl | None = Field(
        default=None, description="Of a Bot API server of your own, instead of Telegram's"
    )
    webhook_url: BaseUrl | None = Field(
        default=None, description="Where Telegram pushes updates, instead of being asked for them"
    )
    webhook_secret: Secret | None = Field(default=None, description="By which pushed updates are known")


class WhatsAppChannelSettings(ChannelPart):
    access_token: Secret | None = Field(default=None, description="The token of the app at Meta")
    phone_number_id: str | None = Field(default=None, description="The id (not the number) of the phone")
    app_secret: Secret | None = Field(default=None, description="By which pushed messages are known")
    verify_token: Secret | None = Field(default=None, description="A word of yours, entered at Meta too")
    template: str | None = Field(
        default=None, description="A template with one place for text, for answers after a day of silence"
    )
    template_language: str = Field(default="en_US", description="The language of that template")
    base_url: BaseUrl | None = Field(default=None, description="Instead of Meta's Graph API")


class SlackChannelSettings(BotChannel):
    app_token: Secret | None = Field(default=None, description="For socket mode: xapp-…")
    signing_secret: Secret | None = Field(default=None, description="For requests of Slack, without a socket")
    base_url: BaseUrl | None = Field(default=None, description="Instead of Slack's Web API")


class EmailChannelSettings(ChannelPart):
    address: str | None = Field(default=None, description="The mailbox of the office")
    password: Secret | None = Field(default=None, description="Its password, or one for apps")
    imap_host: str | None = Field(default=None, description="Where mail is read")
    imap_port: Port | None = Field(default=None, description="993 with tls, else 143")
    smtp_host: str | None = Field(default=None, description="Where mail is sent")
    smtp_port: Port | None = Field(default=None, description="465 with tls, else 587")
    security: Literal["tls", "starttls", "none"] = Field(
        default="tls", description="How both are reached; none only for a server on the same machine"
    )
    verify_senders: bool = Field(
        default=True, description="Take only mail whose sender the provider has checked (dmarc=pass)"
    )
    folder: str = Field(default="INBOX", description="The folder that is read")
    poll_s: Annotated[float, Field(gt=0)] = Field(default=30, description="How often new mail is looked for")


class MatrixChannelSettings(ChannelPart):
    homeserver: BaseUrl | None = Field(default=None, description="The bot's server")
    user: str | None = Field(default=None, description="The bot's id, @bot:example.org")
    access_token: Secret | None = Field(default=None, description="The bot's token")


class SignalChannelSettings(ChannelPart):
    account: str | None = Field(default=None, description="The phone number of the account, with its +")
    host: str = Field(default="127.0.0.1", description="Where signal-cli daemon --tcp listens")
    port: Port = Field(default=7583, description="Its port")


class PersonalWhatsAppChannelSettings(ChannelPart):
    session: str | None = Field(
        default=None, description="The file of the linked device; in the home folder if not set"
    )
    bridge: str | None = Field(
        default=None, description="HOST:PORT of a bridge that runs elsewhere, instead of one of our own"
    )


class WebhookChannelSettings(ChannelPart):
    secret: Secret | None = Field(default=None, description="By which both sides sign what they send")
    url: str | None = Field(default=None, description="Where answers are posted")


class ChannelSettings(SharedPart):
    enabled: tuple[str, ...] = Field(default=(), description="The channels to start")
    discord: DiscordChannelSettings = DiscordChannelSettings()
    telegram: TelegramChannelSettings = TelegramChannelSettings()
    whatsapp: WhatsAppChannelSettings = WhatsAppChannelSettings()
    slack: SlackChannelSettings = SlackChannelSettings()
    email: EmailChannelSettings = EmailChannelSettings()
    matrix: MatrixChannelSettings = MatrixChannelSettings()
    signal: SignalChannelSettings = SignalChannelSettings()
    webhook: WebhookChannelSettings = WebhookChannelSettings()
    whatsapp_personal: PersonalWhatsAppChannelSettings = PersonalWhatsAppChannelSettings()
    defaults: dict[str, str] = Field(
        default_factory=dict, description="By chat: the agent or team it writes to without an @"
    )
