"""The settings of channels: what all have, and what each platform needs besides.

A second bot of a platform is a section of another name with `platform`, and is in `enabled` like the first.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from postroom.settings.base_urls import BaseUrl
from postroom.settings.part import SharedPart, fields_of
from postroom.settings.secret import Secret

Port = Annotated[int, Meta(ge=1, le=65535)]


class ChannelPart(SharedPart):
    """What every channel has."""

    platform: Annotated[str | None, "Of a second bot: the platform it is on"] = None
    max_age_hours: Annotated[
        float, Meta(gt=0), "An answer older than this is not sent any more, but a dead letter"
    ] = 24
    default_agent: Annotated[
        str | None, "Who gets what is addressed to nobody; guests write to nobody else"
    ] = None
    busy: Annotated[
        Literal["queue", "collect", "interrupt", "steer"] | None,
        "What becomes of a message while the agent works for the same person; `queue` if not set",
    ] = None
    noise: Annotated[Literal["final", "progress", "steps"] | None, "What people hear besides the answer"] = (
        None
    )
    signature: Annotated[bool | None, "Whether answers end with the agent's name"] = None
    long_turn_minutes: Annotated[
        float, Meta(ge=0), "After so long a word that it is still worked on; 0: none"
    ] = 5
    loop_events: Annotated[
        int, Meta(ge=0), "So many messages of one sender in a minute, then a minute's pause; 0: none"
    ] = 20


class BotChannel(ChannelPart):
    bot_token: Annotated[Secret | None, "The bot's token, from the platform"] = None


class DiscordChannelSettings(BotChannel):
    base_url: Annotated[BaseUrl | None, "Of a proxy, instead of Discord's API"] = None
    gateway_url: Annotated[str | None, "Of a proxy, instead of Discord's gateway"] = None


class TelegramChannelSettings(BotChannel):
    base_url: Annotated[BaseUrl | None, "Of a Bot API server of your own, instead of Telegram's"] = None
    webhook_url: Annotated[
        BaseUrl | None, "Where Telegram pushes updates, instead of being asked for them"
    ] = None
    webhook_secret: Annotated[Secret | None, "By which pushed updates are known"] = None


class WhatsAppChannelSettings(ChannelPart):
    access_token: Annotated[Secret | None, "The token of the app at Meta"] = None
    phone_number_id: Annotated[str | None, "The id (not the number) of the phone"] = None
    app_secret: Annotated[Secret | None, "By which pushed messages are known"] = None
    verify_token: Annotated[Secret | None, "A word of yours, entered at Meta too"] = None
    template: Annotated[
        str | None, "A template with one place for text, for answers after a day of silence"
    ] = None
    template_language: Annotated[str, "The language of that template"] = "en_US"
    base_url: Annotated[BaseUrl | None, "Instead of Meta's Graph API"] = None


class SlackChannelSettings(BotChannel):
    app_token: Annotated[Secret | None, "For socket mode: xapp-…"] = None
    signing_secret: Annotated[Secret | None, "For requests of Slack, without a socket"] = None
    base_url: Annotated[BaseUrl | None, "Instead of Slack's Web API"] = None


class EmailChannelSettings(ChannelPart):
    address: Annotated[str | None, "The mailbox of the office"] = None
    password: Annotated[Secret | None, "Its password, or one for apps"] = None
    imap_host: Annotated[str | None, "Where mail is read"] = None
    imap_port: Annotated[Port | None, "993 with tls, else 143"] = None
    smtp_host: Annotated[str | None, "Where mail is sent"] = None
    smtp_port: Annotated[Port | None, "465 with tls, else 587"] = None
    security: Annotated[
        Literal["tls", "starttls", "none"], "How both are reached; none only for a server on the same machine"
    ] = "tls"
    verify_senders: Annotated[bool, "Take only mail whose sender the provider has checked (dmarc=pass)"] = (
        True
    )
    folder: Annotated[str, "The folder that is read"] = "INBOX"
    poll_s: Annotated[float, Meta(gt=0), "How often new mail is looked for"] = 30


class MatrixChannelSettings(ChannelPart):
    homeserver: Annotated[BaseUrl | None, "The bot's server"] = None
    user: Annotated[str | None, "The bot's id, @bot:example.org"] = None
    access_token: Annotated[Secret | None, "The bot's token"] = None


class SignalChannelSettings(ChannelPart):
    account: Annotated[str | None, "The phone number of the account, with its +"] = None
    host: Annotated[str, "Where signal-cli daemon --tcp listens"] = "127.0.0.1"
    port: Annotated[Port, "Its port"] = 7583


class PersonalWhatsAppChannelSettings(ChannelPart):
    session: Annotated[str | None, "The file of the linked device; in the home folder if not set"] = None
    bridge: Annotated[str | None, "HOST:PORT of a bridge that runs elsewhere, instead of one of our own"] = (
        None
    )


class WebhookChannelSettings(ChannelPart):
    secret: Annotated[Secret | None, "By which both sides sign what they send"] = None
    url: Annotated[str | None, "Where answers are posted"] = None


class ChannelSettings(SharedPart):
    enabled: Annotated[tuple[str, ...], "The channels to start"] = ()
    discord: DiscordChannelSettings = DiscordChannelSettings()
    telegram: TelegramChannelSettings = TelegramChannelSettings()
    whatsapp: WhatsAppChannelSettings = WhatsAppChannelSettings()
    slack: SlackChannelSettings = SlackChannelSettings()
    email: EmailChannelSettings = EmailChannelSettings()
    matrix: MatrixChannelSettings = MatrixChannelSettings()
    signal: SignalChannelSettings = SignalChannelSettings()
    webhook: WebhookChannelSettings = WebhookChannelSettings()
    whatsapp_personal: PersonalWhatsAppChannelSettings = PersonalWhatsAppChannelSettings()
    defaults: Annotated[dict[str, str], "By chat: the agent or team it writes to without an @"] = field(
        default_factory=dict
    )
    _others: dict[str, Any] = field(default_factory=dict)

    def section(self, name: str) -> Any:
        """A channel's own, also that of a second bot, which is as it was written."""
        return getattr(self, name) if name in fields_of(type(self)) else self._others.get(name)
