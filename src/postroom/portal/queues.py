"""Queues and their messages: depths, the state machine with counts, one message with its whole story."""

from typing import Any
from urllib.parse import quote

import msgspec
from htpy import Node, Renderable, a, button, code, dialog, div, form, h2, li, ol, pre, span, td

from postroom.errors import InvalidField
from postroom.kernel.ledger import Event
from postroom.kernel.model import Counts, Message, NewMessage, Queue
from postroom.kernel.states import OPEN, State
from postroom.portal.charts import draw_machine, draw_spark
from postroom.portal.parts import (
    STATE_WORDS,
    act_button,
    area_field,
    choice_field,
    show_empty,
    show_pairs,
    show_row,
    show_section,
    show_state,
    show_table,
    show_tag,
    text_field,
)
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import cut, show_ago, tell_moment
from postroom.services.messages import FoundMessage

QUEUES = 100
MESSAGES = 50
BUCKETS = 30


async def show_queues(visit: PortalVisit) -> PageView:
    services, caller = visit.services, visit.caller
    scopes = await services.scopes.list_all(caller)
    scope, words = visit.query("scope"), visit.query("q")
    start = visit.number("from")
    page = await services.queues.search(caller, scope or None, words, start=start, limit=QUEUES)
    activity = await services.queues.activity(caller, buckets=BUCKETS)

    def row(queue: Queue, counts: Counts) -> Renderable:
        quiet = "quiet" if queue.system else ""
        return show_row(
            td(".nowrap", class_=quiet)[a(href=f"/queues/{queue.path}")[queue.path]],
            td(".nowrap")[queue.state != "active" and show_tag(str(queue.state))],
            td(".wide-only")[draw_spark(activity.get(queue.path, []))],
            td(".num")[f"{counts.waiting:,}"],
            td(".num")[f"{counts.claimed:,}"],
            td(".num.quiet")[f"{counts.completed:,}"],
            td(".num")[span(class_="tone is-dead" if counts.dead else "quiet")[f"{counts.dead:,}"]],
            td(".quiet.nowrap")[f"{queue.settings.ordering}, {queue.settings.consumer_mode}"],
            row_id=f"queue-{queue.id}",
        )

    here = f"scope={quote(scope)}&q={quote(words)}"
    return PageView(
        title="Queues",
        way="/queues",
        actions=[
            button(data_do="pause", aria_pressed="false")["Pause refreshing"],
            a(".button", href="/queues/dead")["Dead letters"],
            button(".primary", data_do="dialog", data_opens="new-queue")["New queue"],
        ],
        body=[
            form(".filters", method="get", action="/queues", role="search")[
                text_field("q", "Name", words, data_search=True, placeholder="part of a name"),
                _scope_choice([each.slug for each in scopes], scope),
                button["Search"],
            ],
            div(id="queues", data_live=True)[
                show_table(
                    [
                        "Queue",
                        "",
                        ("Last half hour", "wide-only"),
                        ("Waiting", "num"),
                        ("Working", "num"),
                        ("Done", "num"),
                        ("Dead", "num"),
                        "Kind",
                    ],
                    [row(each.queue, each.counts) for each in page.items],
                )
                if page.items
                else show_empty(
                    "No queue of this name", "Make one with ", code["postroom queue create NAME"], " or here."
                ),
            ],
            div(".more")[
                a(".button", href=f"?{here}&from={max(0, start - QUEUES)}")["Previous"] if start else None,
                a(".button", href=f"?{here}&from={start + QUEUES}")["Next"] if page.more else None,
            ],
            dialog("#new-queue", aria_label="New queue")[
                form(".inside", method="post", action="/queues/new")[
                    h2["New queue"],
                    text_field("path", "Name", placeholder="orders or shop/orders", required=True),
                    div(".acts")[
                        button(type="button", data_do="close")["Cancel"], button(".primary")["Create"]
                    ],
                ]
            ],
        ],
    )


def _scope_choice(scopes: list[str], chosen: str) -> Renderable:
    return choice_field(
        "scope", "Scope", [("", "all scopes"), *((each, each) for each in scopes)], chosen, data_submit=True
    )


async def show_queue(visit: PortalVisit) -> PageView:
    scope, slug = visit.path("scope"), visit.path("queue")
    found = await visit.services.queues.read(visit.caller, scope, slug)
    state = visit.query("state")
    filters: dict[str, Any] = {"states": (state,)} if state else {}
    if agent := visit.query("agent"):
        filters["agent"] = agent
    if talk := visit.query("conversation"):
        filters["correlation_id"] = talk
    page = await visit.services.messages.list_page(
        visit.caller,
        scope,
        slug,
        newest_first=True,
        after=visit.number("before") or None,
        limit=MESSAGES,
        **filters,
    )
    queue, base = found.queue, f"/queues/{scope}/{slug}"
    paused = queue.state != "active"
    return PageView(
        title=queue.path,
        way="/queues",
        crumb=("/queues", "Queues"),
        lead=queue.settings.description or None,
        actions=None
        if queue.system
        else [
            act_button(
                "Resume" if paused else "Pause", f"{base}/state", {"verb": "resume" if paused else "pause"}
            ),
            button(".primary", data_do="dialog", data_opens="publish")["Publish a message"],
        ],
        body=div(".stack-l")[
            div(id="machine", data_live=True)[draw_machine(found.counts, base)],
            show_section(
                "Messages",
                form(".filters", method="get", action=base)[
                    _state_choice(state),
                    text_field("agent", "Agent", agent, placeholder="any"),
                    text_field("conversation", "Conversation", talk, placeholder="any"),
                    button["Filter"],
                ],
                div(id="messages", data_live=True)[_messages(page.items, visit.now)],
                div(".more")[
                    a(".button", href=f"?state={state}&before={page.items[-1].seq}")["Older"]
                    if page.more
                    else None
                ],
            ),
            show_section("Settings", show_pairs(*_settings(queue))),
            _publish_dialog(base),
        ],
    )


def _state_choice(state: str) -> Renderable:
    return choice_field("state", "State", [("", "any state"), *STATE_WORDS.items()], state, data_submit=True)


def _settings(queue: Queue) -> list[tuple[str, Node]]:
    given = msgspec.to_builtins(queue.settings)
    words = {name.replace("_", " "): value for name, value in given.items() if value not in (None, "")}
    return [("state", str(queue.state)), *((name, code[str(value)]) for name, value in words.items())]


def _publish_dialog(base: str) -> Renderable:
    return dialog("#publish", aria_label="Publish a message")[
        form(".inside", method="post", action=f"{base}/publish")[
            h2["Publish a message"],
            area_field("body", "Body", '{"test": true}', hint="JSON", class_="mono", rows="6"),
            text_field("type", "Type", "message"),
            div(".acts")[button(type="button", data_do="close")["Cancel"], button(".primary")["Publish"]],
        ]
    ]


def _messages(items: list[FoundMessage], now: int) -> Renderable:
    if not items:
        return show_empty("No messages", "Nothing here is in this state.")
    return show_table(
        ["Message", "State", "Body", ("Attempts", "num"), ("Published", "num")],
        [
            show_row(
                td(".nowrap")[a(".mono", href=f"/messages/{each.message.id}")[each.message.id[-12:]]],
                td[show_state(each.message.state)],
                td(".text.mono.small")[cut(_one_line(each.message.body), 200)],
                td(".num")[str(each.message.attempts)],
                td(".num.quiet")[show_ago(each.message.created_at, now)],
                row_id=f"m-{each.message.id}",
            )
            for each in items
        ],
    )


def _one_line(body: Any) -> str:
    return body if isinstance(body, str) else msgspec.json.encode(body).decode()


async def show_message(visit: PortalVisit) -> PageView:
    story = await visit.services.messages.explain(visit.caller, visit.path("id"))
    message = story.message
    origin = message.origin_queue or message.queue
    talk = message.correlation_id
    return PageView(
        title=f"Message {message.id[-12:]}",
        way="/queues",
        crumb=(f"/queues/{message.scope}/{origin}", f"{message.scope}/{origin}"),
        lead=code(".small")[message.id],
        actions=_message_acts(message),
        body=div(".stack-l", id="story", data_live=True)[
            message.failure_reason
            and div(".banner", role="status")[show_state(message.state), message.failure_reason],
            show_pairs(
                ("State", show_state(message.state)),
                ("Type", message.message_type),
                ("Attempts", str(message.attempts)),
                (
                    "Published",
                    span[tell_moment(message.created_at), " · ", show_ago(message.created_at, visit.now)],
                ),
                ("Held by", message.claimed_by),
                (
                    "Conversation",
                    talk and a(".link.mono", href=f"/conversations/{quote(talk, safe='')}")[talk],
                ),
                (
                    "Caused by",
                    message.causation_id
                    and a(".link.mono", href=f"/messages/{message.causation_id}")[message.causation_id],
                ),
                ("Labels", code[_one_line(message.labels)] if message.labels else None),
                ("Priority", f"{message.priority_tier} {message.priority_score}"),
            ),
            show_section("Body", pre(".body")[_pretty(message.body)]),
            message.result is not None and show_section("Result", pre(".body")[_pretty(message.result)]),
            show_section(
                "What happened to it",
                ol(".story")[[_event(each) for each in story.events]],
                count=len(story.events),
            ),
        ],
    )


def _message_acts(message: Message) -> Node:
    ids = {"ids": message.id}
    if message.state is State.DEAD:
        return [
            act_button("Try again", "/queues/dead/retry", ids, kind="primary"),
            act_button(
                "Give up",
                "/queues/dead/discard",
                ids,
                kind="danger",
                confirm="Give this message up for good?",
            ),
        ]
    if message.state in OPEN:
        return act_button(
            "Cancel", "/messages/cancel", ids, kind="danger", confirm="Cancel this message for good?"
        )
    return None


def _pretty(body: Any) -> str:
    return (
        body if isinstance(body, str) else msgspec.json.format(msgspec.json.encode(body), indent=2).decode()
    )


def _event(event: Event) -> Renderable:
    details = {name: value for name, value in event.details.items() if name not in ("state",)}
    return li[
        span(".quiet.small")[tell_moment(event.time)],
        span[event.type.removeprefix("message.")],
        span(".quiet.small")[f"{event.actor}  ", code[_one_line(details)] if details else None],
    ]


async def create(visit: PortalVisit, form: SentForm) -> ActResult:
    scope, slash, slug = form.word("path").partition("/")
    if not slash:
        scope, slug = "default", scope
    made = await visit.services.queues.create(visit.acting, scope, slug, {})
    return ActResult(to=f"/queues/{made.queue.path}")


async def set_state(visit: PortalVisit, form: SentForm) -> ActResult:
    found = await visit.services.queues.set_state(
        visit.acting, visit.path("scope"), visit.path("queue"), form.word("verb")
    )
    return ActResult(said=f"The queue is {found.queue.state}.", to=f"/queues/{found.queue.path}")


async def publish(visit: PortalVisit, form: SentForm) -> ActResult:
    try:
        body = msgspec.json.decode(form.text("body"))
    except msgspec.DecodeError as error:
        raise InvalidField("body", f"is no JSON: {error}") from None
    draft = NewMessage(body=body, message_type=form.word("type") or "message")
    await visit.services.messages.publish(visit.acting, visit.path("scope"), visit.path("queue"), [draft])
    return ActResult(said="Published.")


async def cancel(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.messages.cancel(visit.acting, form.word("ids"))
    return ActResult(said="Cancelled.")


PART = PortalPart(
    {
        "/queues": show_queues,
        "/queues/{scope}/{queue:path}": show_queue,
        "/messages/{id}": show_message,
    },
    {
        "/queues/new": create,
        "/queues/{scope}/{queue:path}/state": set_state,
        "/queues/{scope}/{queue:path}/publish": publish,
        "/messages/cancel": cancel,
    },
)
