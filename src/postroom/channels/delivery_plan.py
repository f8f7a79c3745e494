"""What becomes of one reply, piece by piece. The plan is a document, so that it outlives the process.

prepared → sent → confirmed, or ambiguous; abandoned ends a piece that will not be sent.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import msgspec

from postroom.channels.model import Address, Piece
from postroom.services import unconfirmed_replies

# The kind of document under which open and ambiguous deliveries are kept, by the id of the reply's message.
DELIVERY = unconfirmed_replies.KIND


class PieceState(StrEnum):
    PREPARED = "prepared"
    SENT = "sent"
    CONFIRMED = "confirmed"
    AMBIGUOUS = "ambiguous"
    ABANDONED = "abandoned"


ENDED = frozenset({PieceState.CONFIRMED, PieceState.AMBIGUOUS, PieceState.ABANDONED})


class PlannedPiece(msgspec.Struct, frozen=True, kw_only=True):
    piece: Piece
    state: PieceState = PieceState.PREPARED
    # The platform's id, once it is confirmed.
    platform_id: str | None = None
    # Why it is ambiguous or abandoned, or was not sent the last time.
    reason: str | None = None
    # When it was sent last, as far as the plan knows.
    sent_at: int = 0
    # Failures in a row; waiting because the platform asks for it is none.
    failures: int = 0
    # Says that something before it may be missing, instead of something of its own.
    remark: bool = False


class DeliveryPlan(msgspec.Struct, frozen=True, kw_only=True):
    channel: str
    address: Address
    pieces: tuple[PlannedPiece, ...]
    # When the owner sent it once more.
    since: int = 0

    @property
    def state(self) -> PieceState:
        """Of the whole: what is worst among its ends, or how far it is."""
        states = {planned.state for planned in self.pieces}
        for state in (PieceState.ABANDONED, PieceState.AMBIGUOUS):
            if state in states and states <= ENDED:
                return state
        if states <= {PieceState.CONFIRMED}:
            return PieceState.CONFIRMED
        return PieceState.PREPARED if states <= {PieceState.PREPARED} else PieceState.SENT

    def next_piece(self) -> int | None:
        """The first piece that has not ended."""
        for index, planned in enumerate(self.pieces):
            if planned.state not in ENDED:
                return index
        return None

    def change(self, index: int, **changes: Any) -> "DeliveryPlan":
        changed = msgspec.structs.replace(self.pieces[index], **changes)
        return self.with_pieces([*self.pieces[:index], changed, *self.pieces[index + 1 :]])

    def with_pieces(self, pieces: Sequence[PlannedPiece]) -> "DeliveryPlan":
        return msgspec.structs.replace(self, pieces=tuple(pieces))

    def abandon_rest(self, reason: str) -> "DeliveryPlan":
        return self.with_pieces(
            [
                planned
                if planned.state in ENDED
                else msgspec.structs.replace(planned, state=PieceState.ABANDONED, reason=reason)
                for planned in self.pieces
            ]
        )

    def take_up_abandoned(self, now: int) -> "DeliveryPlan":
        """The owner sends the reply once more: what arrived is not sent again, and its age counts anew."""
        if self.next_piece() is not None:
            return self
        return msgspec.structs.replace(self, since=now).with_pieces(
            [
                msgspec.structs.replace(planned, state=PieceState.PREPARED, reason=None, failures=0)
                if planned.state is PieceState.ABANDONED
                else planned
                for planned in self.pieces
            ]
        )

    def summary(self) -> dict[str, Any]:
        """What stays with the reply's message for good."""
        pieces = [
            {"state": planned.state.value, "id": planned.platform_id, "reason": planned.reason}
            for planned in self.pieces
        ]
        return {"delivery": self.state.value, "chat": self.address.chat, "pieces": pieces}
