"""Slash commands and pressed buttons: acknowledged once, within three seconds, and answered for a quarter of
an hour.
"""

from dataclasses import dataclass
from typing import Any

from postroom.clock import SECOND
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.discord.messages import ChannelMessages
from postroom.testing.platforms.discord.objects import DiscordChannel, SnowflakeMint
from postroom.testing.platforms.http import CallParameters, NotImplementedByFake, Refusal
from postroom.testing.platforms.transcript import Act, Transcript

ACKNOWLEDGE_WITHIN = 3 * SECOND
TOKEN_LIVES = 15 * 60 * SECOND
COMMAND, COMPONENT = 2, 3
REPLY, DEFERRED_REPLY, DEFERRED_UPDATE, UPDATE = 4, 5, 6, 7


@dataclass
class OpenInteraction:
    id: str
    token: str
    at: int
    channel: DiscordChannel
    kind: int
    # The message whose button was pressed; for a command the answer to it, once there is one.
    message_id: str | None = None
    acknowledged: bool = False


class Interactions:
    def __init__(
        self, clock: HeldClock, mint: SnowflakeMint, transcript: Transcript, messages: ChannelMessages
    ) -> None:
        self._clock = clock
        self._mint = mint
        self._transcript = transcript
        self._messages = messages
        self._open: dict[str, OpenInteraction] = {}

    def begin(self, channel: DiscordChannel, kind: int, message_id: str | None = None) -> OpenInteraction:
        number = self._mint.mint()
        interaction = OpenInteraction(number, f"token-{number}", self._clock.now(), channel, kind, message_id)
        self._open[interaction.token] = interaction
        return interaction

    def respond(self, interaction_id: str, token: str, parameters: CallParameters) -> dict[str, Any]:
        interaction = self._open.get(token)
        kind = parameters.number("type")
        data = CallParameters(parameters.structure("data", {}), parameters.files)
        parameters.ignore("with_response")
        if interaction is None or interaction.id != interaction_id:
            raise Refusal(404, "Unknown interaction", code=10062)
        if interaction.acknowledged:
            raise Refusal(400, "Interaction has already been acknowledged.", code=40060)
        if self._clock.now() - interaction.at > ACKNOWLEDGE_WITHIN:
            raise Refusal(404, "Unknown interaction", code=10062)
        message = None
        match kind:
            case 4:
                message, _ = self._messages.send(interaction.channel, data, interaction=interaction.id)
                interaction.message_id = message["id"]
            case 7 if interaction.message_id is not None:
                message = self._messages.edit(interaction.channel.id, interaction.message_id, data)
            case 5 | 6:
                data.ignore("flags")
                data.check_read("a deferred answer")
            case _:
                raise NotImplementedByFake(f"answers of type {kind} to interactions")
        interaction.acknowledged = True
        acknowledgement = {"interaction": interaction.id, "type": kind}
        self._transcript.add_act(
            Act("acknowledged", interaction.channel.id, self._clock.now(), acknowledgement)
        )
        resource: dict[str, Any] = {"type": kind}
        if message is not None:
            resource["message"] = message
        described = {
            "id": interaction.id,
            "type": interaction.kind,
            "response_message_id": interaction.message_id,
            "response_message_loading": kind == DEFERRED_REPLY,
            "response_message_ephemeral": False,
        }
        return {"interaction": described, "resource": resource}

    def follow_up(self, token: str, parameters: CallParameters) -> dict[str, Any]:
        interaction = self._of_token(token)
        parameters.ignore("wait", "with_components")
        message, _ = self._messages.send(interaction.channel, parameters, interaction=interaction.id)
        if interaction.kind == COMMAND and interaction.message_id is None:
            interaction.message_id = message["id"]
        return message

    def edit_original(self, token: str, parameters: CallParameters) -> dict[str, Any]:
        """Fills in an answer that was promised (deferred), or changes the message answered or pressed."""
        interaction = self._of_token(token)
        if interaction.message_id is None:
            return self.follow_up(token, parameters)
        return self._messages.edit(interaction.channel.id, interaction.message_id, parameters)

    def _of_token(self, token: str) -> OpenInteraction:
        interaction = self._open.get(token)
        if interaction is None:
            raise Refusal(404, "Unknown Webhook", code=10015)
        if self._clock.now() - interaction.at > TOKEN_LIVES:
            raise Refusal(401, "Invalid Webhook Token", code=50027)
        if not interaction.acknowledged:
            raise Refusal(404, "Unknown Webhook", code=10015)
        return interaction
