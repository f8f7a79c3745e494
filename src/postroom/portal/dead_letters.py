"""Dead letters: what gave up, why, and trying again or giving up for good, one or many at once."""

from htpy import Renderable, a, button, div, form, input, table, tbody, td, th, thead, tr

from postroom.kernel.model import Message
from postroom.portal.parts import show_empty, show_row, show_section
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import cut, show_ago, tell_count

PAGE = 100


async def show_dead(visit: PortalVisit) -> PageView:
    page = await visit.services.messages.list_page(
        visit.caller,
        visit.query("scope") or None,
        states=("dead",),
        newest_first=True,
        after=visit.number("before") or None,
        limit=PAGE,
    )
    return PageView(
        title="Dead letters",
        way="/queues",
        crumb=("/queues", "Queues"),
        lead="Messages that used up their attempts. Trying again begins anew; giving up ends them.",
        body=show_section(
            "Newest first",
            _letters([each.message for each in page.items], visit.now)
            if page.items
            else show_empty("No dead letters", "What fails for good comes here, with its reason."),
            count=len(page.items),
            part_id="dead",
            tools=a(".link", href=f"?before={page.items[-1].seq}")["Older"] if page.more else None,
        ),
    )


def _letters(messages: list[Message], now: int) -> Renderable:
    box = input(type="checkbox", data_do="all", data_names="ids", aria_label="Mark all", autocomplete="off")
    heads = [th[box], th["Message"], th["From"], th["Reason"], th(".num")["Attempts"], th(".num")["Died"]]
    return form(".stack", method="post", action="/queues/dead/retry")[
        div(".flow")[
            button(".primary")["Try again"],
            button(
                ".danger",
                formaction="/queues/dead/discard",
                data_confirm="Give up what is marked for good? Nothing of it is tried again.",
            )["Give up"],
        ],
        div(".scroll")[table[thead[tr[heads]], tbody[[_letter(each, now) for each in messages]]]],
    ]


def _letter(message: Message, now: int) -> Renderable:
    origin = message.origin_queue or message.queue
    return show_row(
        td[
            input(
                type="checkbox",
                name="ids",
                value=message.id,
                aria_label=f"Mark {message.id}",
                autocomplete="off",
            )
        ],
        td(".nowrap")[a(".link.mono", href=f"/messages/{message.id}")[message.id[-12:]]],
        td(".nowrap")[a(href=f"/queues/{message.scope}/{origin}")[f"{message.scope}/{origin}"]],
        td(".text")[cut(message.failure_reason or "", 300)],
        td(".num")[str(message.attempts)],
        td(".num")[show_ago(message.updated_at, now)],
        row_id=f"dead-{message.id}",
    )


def _marked(form: SentForm) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for text in form.every("ids") for word in text.split()))


async def retry(visit: PortalVisit, form: SentForm) -> ActResult:
    ids = _marked(form)
    if not ids:
        return ActResult(said="Mark the messages first.")
    await visit.services.dead_letters.replay(visit.acting, *ids)
    return ActResult(said=f"{tell_count(len(ids), 'message')} sent back.")


async def discard(visit: PortalVisit, form: SentForm) -> ActResult:
    ids = _marked(form)
    if not ids:
        return ActResult(said="Mark the messages first.")
    await visit.services.dead_letters.discard(visit.acting, *ids)
    return ActResult(said=f"{tell_count(len(ids), 'message')} given up.")


PART = PortalPart({"/queues/dead": show_dead}, {"/queues/dead/retry": retry, "/queues/dead/discard": discard})
