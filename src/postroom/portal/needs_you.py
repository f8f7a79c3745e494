"""The first page: what waits for a person, answered in place; beside it who works on what, and its cost."""

from urllib.parse import quote

from htpy import Node, Renderable, a, button, div, form, input, kbd, li, option, p, select, span, ul

from postroom.kernel.reviews.sections import field_of, option_id
from postroom.portal.markdown import render_markdown
from postroom.portal.parts import act_button, show_empty, show_face, show_section, show_state, show_tag
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import cut, show_ago, tell_ago, tell_count, tell_money, tell_span
from postroom.services.need_answers import NeedAnswer, find_need, give_answer, list_answers
from postroom.services.needs_you import NeedKind, PersonNeed
from postroom.services.reviews import Review

KIND_WORDS = {
    NeedKind.PAUSE: "paused",
    NeedKind.CREDENTIAL: "credentials",
    NeedKind.REVIEW: "review",
    NeedKind.BUDGET: "budget",
    NeedKind.CONVERSATION: "guard",
    NeedKind.SENDER: "new sender",
    NeedKind.CHANNEL: "channel",
    NeedKind.HOST: "host",
    NeedKind.DELIVERY: "delivery",
    NeedKind.UNCONFIRMED: "unconfirmed",
    NeedKind.DEAD: "dead letter",
}
LAST_TALKS = 6
# Of dead letters as everywhere; other answers have numbers.
KEYS = {"retry": "r", "discard": "d"}
# A line has no room for Markdown.
MARKS = str.maketrans("", "", "*`#>")


async def show_needs(visit: PortalVisit) -> PageView:
    needs = await visit.services.needs_you.list_all(visit.caller)
    blocking = [need for need in needs if need.is_blocking]
    news = [need for need in needs if not need.is_blocking]
    nothing = show_empty(
        "Nothing waits for you",
        "Reviews, held budgets, dead letters and new senders appear here the moment they need a decision. ",
        "Write to an agent in ",
        a(".link", href="/chat")["Chat"],
        ", see ",
        a(".link", href="/setup")["how agents think"],
        ", or let one ask you with ",
        span(".mono")["ask_human"],
        ".",
    )
    body = [
        show_section(
            "Blocking",
            nothing if not needs else _list(blocking, visit.now),
            count=len(blocking),
            part_id="blocking",
        ),
        show_section("News", _list(news, visit.now), count=len(news), part_id="news"),
    ]
    return PageView(title="Needs you", way="/", body=body, side=await _beside(visit))


def _list(needs: list[PersonNeed], now: int) -> Node:
    if not needs:
        return p(".empty")["Nothing here."]
    return ul[[_item(need, now) for need in needs]]


def _item(need: PersonNeed, now: int) -> Renderable:
    due = None
    if need.due_at:
        due = show_tag(f"decides itself {tell_ago(need.due_at, now)}")
    return li(
        id=f"need-{need.kind}-{need.id}",
        class_="item blocking" if need.is_blocking else "item",
        data_row=True,
        tabindex="-1",
    )[
        div(".top")[
            show_tag(KIND_WORDS[need.kind], accent=need.is_blocking),
            span(".title.clip")[need.title],
            due,
            show_ago(need.since, now) if need.since else None,
        ],
        need.detail and div(".detail.prose")[render_markdown(need.detail)],
        div(".acts")[_acts(need), _way(need)],
    ]


def _way(need: PersonNeed) -> Node:
    """To where there is more to read: what died as a message, what an agent asks as a conversation."""
    if need.ids:
        return a(".button.plain", href=f"/messages/{need.ids[0]}")["Open the message"]
    if need.conversation and need.agent:
        way = f"/conversations/{quote(need.conversation, safe='')}"
        return a(".button.plain", href=way)["Open the conversation"]
    return None


def _acts(need: PersonNeed) -> Node:
    if need.kind is NeedKind.REVIEW and need.review is not None:
        return _decide(need.review)
    if need.kind is NeedKind.BUDGET:
        return form(method="post", action="/needs/raise")[
            input(type="hidden", name="account", value=need.id),
            input(
                ".note",
                name="usd",
                inputmode="decimal",
                required=True,
                placeholder="New limit in $",
                aria_label="New limit in dollars",
            ),
            button(".primary")["Raise for today"],
        ]
    answers = list_answers(need)
    if need.kind is NeedKind.HOST:
        return a(".button", href="/system")["See the hosts"]
    if not answers:
        return a(".button", href="/channels")["Open channels"]
    return [_answer_button(need, each, at) for at, each in enumerate(answers, 1)]


def _answer_button(need: PersonNeed, each: NeedAnswer, at: int) -> Renderable:
    fields = {"kind": need.kind, "id": need.id, "ids": " ".join(need.ids), "word": each.word}
    what = f" {tell_count(len(need.ids), 'message')}" if need.ids else ""
    return act_button(
        each.says.capitalize(),
        "/needs/give",
        fields,
        key=KEYS.get(each.word, str(at)),
        kind="plain danger" if each.is_final else "primary" if at == 1 and not need.ids else "",
        confirm=f"{each.says.capitalize()}{what} for good? {each.warns}" if each.is_final else "",
    )


def _decide(review: Review) -> Renderable:
    """Its options as buttons, and its other fields before them."""
    sections = review.spec.get("sections", ())
    inputs = [part for part in sections if part.get("type") == "input"]
    decision = next(part for part in sections if part.get("type") == "decision")
    options = [option_id(each) for each in decision["options"]]
    return form(method="post", action="/needs/answer")[
        input(type="hidden", name="id", value=review.found.message.id),
        input(type="hidden", name="seen", value=review.seen),
        [_input(part) for part in inputs],
        [
            button(
                class_="primary" if at == 1 else None,
                name=f"field.{field_of(decision)}",
                value=word,
                data_key=str(at),
            )[word, kbd[str(at)]]
            for at, word in enumerate(options, 1)
        ],
    ]


def _input(part: dict) -> Renderable:
    name, kind, needed = f"field.{field_of(part)}", part.get("kind", "text"), part.get("required", True)
    word = part.get("title") or field_of(part)
    if kind in ("choice", "boolean"):
        choices = (
            [option_id(each) for each in part.get("options", ())] if kind == "choice" else ["true", "false"]
        )
        return select(name=name, aria_label=word)[[option[each] for each in choices]]
    kinds = {"number": "number", "date": "date"}
    return input(
        ".note", name=name, type=kinds.get(kind, "text"), required=needed, placeholder=word, aria_label=word
    )


async def _beside(visit: PortalVisit) -> Node:
    caller, services = visit.caller, visit.services
    in_hand = [each for each in await services.workload.in_hand(caller) if each.active]
    counts = await services.workload.counts(caller)
    budgets = (await services.budgets.overview(caller)).budgets
    today = next((each for each in budgets if each.account.startswith("day/")), None)
    work = [
        li(".gap", id=f"work-{each.agent}")[
            show_face(each.agent, busy=True),
            a(".clip", href=f"/chat?with={quote(each.agent)}")[
                f"@{each.agent} ", span(".quiet")[_about(each.message.body)]
            ],
            span(".right.quiet.small.nowrap")[tell_span(each.took / 1_000_000)],
        ]
        for each in in_hand[:8]
    ]
    rows = await services.conversations.history(caller, limit=40)
    talks: dict[str, dict] = {}
    for row in rows:
        talks.setdefault(f"{row['channel']}:{row['message_id']}", row)
    spent = today.spent / 1_000_000 if today else 0.0
    limit = today.limit / 1_000_000 if today and today.limit else None
    return [
        show_section(
            "Working now",
            ul(".stack")[work] if work else p(".quiet")["Everybody is free."],
            count=counts.processing,
            part_id="working",
            tools=show_state("pending", f"{counts.incoming} waiting") if counts.incoming else None,
        ),
        show_section(
            "Today's cost",
            p[
                span(".title")[tell_money(spent)],
                span(".quiet")[f" of {tell_money(limit)}" if limit else " spent, no limit set"],
            ],
            part_id="cost",
        ),
        show_section(
            "Last said",
            ul(".stack")[
                [
                    li(".gap")[
                        show_face(row["agent_id"]),
                        a(".clip", href=f"/conversations/{quote(key, safe='')}")[
                            cut(row["content"].translate(MARKS), 60)
                        ],
                        span(".right.quiet.small")[show_ago(row["created_at"] * 1000, visit.now)],
                    ]
                    for key, row in list(talks.items())[:LAST_TALKS]
                ]
            ]
            if talks
            else p(".quiet")["Nobody has written yet."],
            part_id="talks",
        ),
    ]


def _about(body: object) -> str:
    return cut(str(body.get("text", "")), 40) if isinstance(body, dict) else ""


async def answer_review(visit: PortalVisit, form: SentForm) -> ActResult:
    found = await visit.services.reviews.read(visit.caller, form.word("id"))
    kinds = {field_of(part): part.get("kind") for part in found.spec["sections"] if part["type"] == "input"}
    values: dict[str, object] = {}
    for name, text in form.items().items():
        field = name.removeprefix("field.")
        if field == name or (not text and kinds.get(field) is not None):
            continue
        values[field] = _value(kinds.get(field), text)
    await visit.services.reviews.answer(visit.acting, form.word("id"), values, seen=form.word("seen") or None)
    return ActResult(said="Answered.")


def _value(kind: str | None, text: str) -> object:
    if kind == "boolean":
        return text == "true"
    if kind == "number":
        try:
            number = float(text)
        except ValueError:
            return text  # the service says what is wrong with it
        return int(number) if number.is_integer() else number
    return text


async def raise_budget(visit: PortalVisit, form: SentForm) -> ActResult:
    usd = _value("number", form.word("usd").lstrip("$"))
    moved = await visit.services.budgets.raise_budget(visit.acting, form.word("account"), usd)  # type: ignore[arg-type]
    return ActResult(said=f"Raised for today; {moved} messages go on.")


async def give(visit: PortalVisit, form: SentForm) -> ActResult:
    need = await find_need(
        visit.services, visit.caller, form.word("kind"), form.word("id"), form.word("ids").split()
    )
    await give_answer(visit.services, visit.acting, need, form.word("word"))
    return ActResult(said="Done.")


async def resume_all(visit: PortalVisit, form: SentForm) -> ActResult:
    moved = await visit.services.budgets.resume_all(visit.acting)
    return ActResult(said=f"Everybody goes on; {moved} messages were waiting.")


async def pause_all(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.budgets.pause_all(visit.acting)
    return ActResult(said="No agent begins a turn any more. Messages are still accepted.")


PART = PortalPart(
    {"/": show_needs},
    {
        "/needs/answer": answer_review,
        "/needs/give": give,
        "/needs/raise": raise_budget,
        "/needs/resume-all": resume_all,
        "/needs/pause-all": pause_all,
    },
)
