"""What each platform needs to be connected, and where its owner finds it, for the shell and the portal."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class ChannelGuide:
    """`fields` are asked for besides the token; those whose names say so are secrets."""

    name: str
    token: re.Pattern[str] | None = None
    looks: str = ""
    where: str = ""
    fields: tuple[str, ...] = ()
    # Nobody is asked whether they want it.
    is_risky: bool = False

    @property
    def asks(self) -> tuple[str, ...]:
        """The settings that are needed, by their names."""
        return (*(("bot_token",) if self.token is not None else ()), *self.fields)

    def find_problem(self, token: str) -> str | None:
        """What is wrong with a token by its looks alone."""
        if self.token is None or self.token.fullmatch(token):
            return None
        return f"That is no token of a {self.name} bot: it must be {self.looks}"


GUIDES = {
    "telegram": ChannelGuide(
        "Telegram",
        re.compile(r"\d{5,}:[A-Za-z0-9_-]{30,}"),
        "digits, a colon and 35 signs, like 110201543:AAHdqTcvCH1v…",
        "Write to @BotFather in Telegram: /newbot, and copy the token it gives you.",
    ),
    "discord": ChannelGuide(
        "Discord",
        re.compile(r"[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{20,}"),
        "three parts with dots between them, like MTk4NjIy….Cl2FMQ.ZnCjm1X…",
        "On discord.com/developers: New Application, Bot, Reset Token; switch on Message Content Intent.",
    ),
    "whatsapp": ChannelGuide(
        "WhatsApp",
        where="On developers.facebook.com: an app with WhatsApp; its webhook leads to /hooks/whatsapp.",
        fields=("access_token", "phone_number_id", "app_secret", "verify_token"),
    ),
    "slack": ChannelGuide(
        "Slack",
        re.compile(r"xoxb-[A-Za-z0-9-]{10,}"),
        "xoxb- and what follows it",
        "On api.slack.com/apps: a new app with Socket Mode; scopes chat:write, im:history, users:read,"
        " files:read, files:write, app_mentions:read; events message.im and app_mention.",
        fields=("app_token",),
    ),
    "email": ChannelGuide(
        "E-mail",
        where="A mailbox of its own, with IMAP and SMTP.",
        fields=("address", "password", "imap_host", "smtp_host"),
    ),
    "matrix": ChannelGuide(
        "Matrix",
        where="An account for the bot; its access token is in its client, under Help & About.",
        fields=("homeserver", "user", "access_token"),
    ),
    "signal": ChannelGuide(
        "Signal",
        where="signal-cli daemon --tcp --receive-mode=manual, with an account that is registered.",
        fields=("account",),
    ),
    "whatsapp_personal": ChannelGuide(
        "WhatsApp, a personal account",
        where="Its phone scans a code. Beware: programs on personal accounts are against WhatsApp's terms,"
        " and accounts are closed for it. Use a number that you can lose, or the business API (whatsapp).",
        is_risky=True,
    ),
    "webhook": ChannelGuide(
        "Webhook", where="Any program that can send and take signed requests.", fields=("secret", "url")
    ),
}
