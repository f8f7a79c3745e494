"""Which answers a thing that waits for a person has, and what each does: the same for every entrance."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from postroom.errors import Conflict, InvalidField
from postroom.kernel.reviews.sections import field_of, option_id
from postroom.services.callers import Caller
from postroom.services.needs_you import NeedKind, PersonNeed

if TYPE_CHECKING:
    from postroom.services.server import ServerServices


class NeedAnswer(msgspec.Struct, frozen=True):
    """`word` is what is answered, `says` what a person reads; what cannot be taken back `warns`."""

    word: str
    says: str
    warns: str = ""

    @property
    def is_final(self) -> bool:
        return bool(self.warns)


class NeedGone(Conflict):
    """This does not wait for anybody any more. Nothing was changed."""

    code = "NEED_GONE"


_RETRY = (
    NeedAnswer("retry", "try again"),
    NeedAnswer("discard", "give up", "Nothing of it is tried again."),
)
_ANSWERS: dict[NeedKind, tuple[NeedAnswer, ...]] = {
    NeedKind.DEAD: _RETRY,
    NeedKind.DELIVERY: _RETRY,
    NeedKind.CREDENTIAL: _RETRY,
    NeedKind.UNCONFIRMED: (
        NeedAnswer("resend", "send again", "It says that it may be a duplicate."),
        NeedAnswer("dismiss", "let it be"),
    ),
    NeedKind.SENDER: (NeedAnswer("approve", "let them write"), NeedAnswer("dismiss", "dismiss")),
    NeedKind.CONVERSATION: (
        NeedAnswer("continue", "continue"),
        NeedAnswer("stop", "stop it", "What is open of it is cancelled."),
    ),
    NeedKind.PAUSE: (NeedAnswer("continue", "let everybody go on"),),
}


def list_answers(need: PersonNeed) -> tuple[NeedAnswer, ...]:
    """Those that are one word. A review that asks for more, and a budget, have none: they are answered where
    there is a form, or by a command."""
    if need.kind is not NeedKind.REVIEW or need.review is None:
        return _ANSWERS.get(need.kind, ())
    sections = need.review.spec.get("sections", ())
    if any(part.get("type") == "input" and part.get("required") for part in sections):
        return ()
    decision = next((part for part in sections if part.get("type") == "decision"), None)
    options = [] if decision is None else [option_id(each) for each in decision["options"]]
    return tuple(NeedAnswer(option, option) for option in options)


async def find_need(
    services: "ServerServices", caller: Caller, kind: str, need_id: str, ids: Sequence[str] = ()
) -> PersonNeed:
    """One of those that wait; of several messages only those that the person was shown, by their ids."""
    for need in await services.needs_you.list_all(caller):
        if need.kind == kind and need_id in (need.id, *need.ids):
            shown = tuple(each for each in need.ids if each in ids)
            if shown or not need.ids:
                return msgspec.structs.replace(need, ids=shown)
    raise NeedGone


async def give_answer(services: "ServerServices", caller: Caller, need: PersonNeed, word: str) -> None:
    """Carry out one of the answers; anything else is refused."""
    if word not in {answer.word for answer in list_answers(need)}:
        raise InvalidField("answer", f"{word!r} is no answer to {need.title!r}")
    match need.kind:
        case NeedKind.SENDER if word == "approve":
            await services.pairing.approve(caller, need.id)
        case NeedKind.SENDER:
            await services.pairing.dismiss(caller, need.id)
        case NeedKind.CONVERSATION if word == "continue":
            await services.budgets.resume(caller, need.id)
        case NeedKind.CONVERSATION:
            await services.budgets.stop(caller, need.id)
        case NeedKind.PAUSE:
            await services.budgets.resume_all(caller)
        case NeedKind.REVIEW:
            assert need.review is not None
            sections = need.review.spec["sections"]
            decision = next(part for part in sections if part.get("type") == "decision")
            values = {field_of(decision): word}
            await services.reviews.answer(caller, need.id, values, seen=need.review.seen)
        case NeedKind.UNCONFIRMED if word == "resend":
            await services.unconfirmed.resend(caller, *need.ids)
        case NeedKind.UNCONFIRMED:
            await services.unconfirmed.dismiss(caller, *need.ids)
        case NeedKind.DELIVERY if word == "discard":
            await services.unconfirmed.dismiss(caller, *need.ids)
        case _ if word == "retry":
            await services.dead_letters.replay(caller, *need.ids)
        case _:
            await services.dead_letters.discard(caller, *need.ids)
