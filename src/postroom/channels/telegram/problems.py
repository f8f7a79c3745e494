"""What Telegram's answers and broken connections mean for a piece that was being sent."""

import aiohttp
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramBadRequest,
    TelegramEntityTooLarge,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)

from postroom.channels.errors import (
    ChatMoved,
    MarkupRefused,
    MaybeSent,
    NotSent,
    RetryAfter,
    SendProblem,
    Undeliverable,
)

# No connection was made, so nothing can have been sent.
_UNCONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


def explain(error: Exception) -> Exception:
    """A `SendProblem`, or the error itself when it is a fault of this program."""
    match error:
        case SendProblem():
            return error
        case TelegramRetryAfter():
            return RetryAfter("Telegram asks to wait.", error.retry_after)
        case TelegramMigrateToChat():
            return ChatMoved("The group has a new id.", str(error.migrate_to_chat_id))
        case TelegramBadRequest() if "entit" in error.message:
            return MarkupRefused(error.message)
        case TelegramEntityTooLarge():
            return Undeliverable("The file is too large for Telegram.", whole=False)
        case TelegramBadRequest() | TelegramForbiddenError() | TelegramNotFound():
            return Undeliverable(error.message)
        case TelegramUnauthorizedError():
            return NotSent("Telegram does not know the bot's token any more.")
        case TelegramServerError():
            return NotSent(f"Telegram failed: {error.message}.")
        case TelegramNetworkError() if isinstance(error.__cause__, _UNCONNECTED):
            return NotSent("Telegram could not be reached.")
        case TelegramNetworkError() | ClientDecodeError():
            # The request went out, and what stands between may have lost only the answer.
            return MaybeSent("The connection to Telegram broke before it answered.")
        case _:
            return error
