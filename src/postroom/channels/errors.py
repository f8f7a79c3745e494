"""What may become of sending a piece, besides success. From `send`, a channel raises nothing else."""

from postroom.errors import Conflict, PostroomError


class SendProblem(PostroomError):
    """{reason}"""

    code = "SEND_PROBLEM"

    def __init__(self, reason: str, **data: object) -> None:
        super().__init__(reason=reason, **data)
        self.reason = reason


class RetryAfter(SendProblem):
    """{reason} It will be sent in {seconds} s."""

    code = "SEND_LATER"
    http_status = 429

    def __init__(self, reason: str, seconds: float, *, whole_channel: bool = False) -> None:
        super().__init__(reason, seconds=seconds)
        self.seconds = seconds
        self.whole_channel = whole_channel


class NotSent(SendProblem):
    """{reason} It was not sent, and will be tried again."""

    code = "NOT_SENT"
    http_status = 502


class MaybeSent(SendProblem):
    """{reason} It may have been sent."""

    code = "MAYBE_SENT"
    http_status = 502


class Undeliverable(SendProblem):
    """{reason} It cannot be delivered."""

    code = "UNDELIVERABLE"
    http_status = 422

    def __init__(self, reason: str, *, whole: bool = True) -> None:
        """`whole`: nothing of the reply can be delivered, not only this piece."""
        super().__init__(reason)
        self.whole = whole


class MarkupRefused(SendProblem):
    """{reason} It is sent as plain text."""

    code = "MARKUP_REFUSED"
    http_status = 422


class ChatMoved(SendProblem):
    """{reason} It goes on under {chat}."""

    code = "CHAT_MOVED"
    http_status = 422

    def __init__(self, reason: str, chat: str) -> None:
        super().__init__(reason, chat=chat)
        self.chat = chat


class FileUnavailable(PostroomError):
    """The file "{name}" could not be fetched: {reason}"""

    code = "FILE_UNAVAILABLE"
    http_status = 502


class ChannelRuns(Conflict):
    """The channel {channel} runs already. To begin anew: postroom channel restart {channel}"""

    code = "CHANNEL_RUNS"


class ChannelNotReceiving(PostroomError):
    """The channel {channel} is started and goes on trying, but receives nothing yet: {reason}"""

    code = "CHANNEL_NOT_RECEIVING"
    http_status = 502


class ChannelUnlinked(PostroomError):
    """The channel {channel} is not linked with a phone. Scan its code: postroom channel setup {channel}"""

    code = "CHANNEL_UNLINKED"
    http_status = 409


class ChannelMisconfigured(PostroomError):
    """The channel {channel} cannot work: {reason}"""

    code = "CHANNEL_MISCONFIGURED"
    http_status = 409
    exit_code = 2
