"""Conversations, found by words; one of them as tree, timeline and reading text, and why it stands so."""

import asyncio
from contextlib import closing
from datetime import datetime
from itertools import islice
from urllib.parse import quote

import msgspec
from htpy import a, button, dialog, div, form, h2, input, label, p, span, td

from postroom.errors import InvalidField
from postroom.office.traces import ConversationTrace
from postroom.portal.parts import act_button, show_empty, show_row, show_table, text_field
from postroom.portal.trace_views import draw_trace
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import cut, show_ago

SHOWN = 100
MAX_EXPORT_PIECES = 256


async def show_conversations(visit: PortalVisit) -> PageView:
    words, agent, channel = visit.query("q"), visit.query("agent"), visit.query("channel")
    rows = await _found(visit, words, agent, channel)
    table = show_table(
        ["Said", "Who", "Channel", ("When", "num")],
        [
            show_row(
                td(".text")[a(href=f"/conversations/{quote(row['key'], safe='')}")[cut(row["text"], 200)]],
                td(".nowrap")[row["who"]],
                td(".nowrap.quiet")[row["channel"] or ""],
                td(".num.quiet")[show_ago(row["at"], visit.now)],
            )
            for row in rows
        ],
    )
    return PageView(
        title="Conversations",
        way="/conversations",
        lead="Everything that was said, from the store and the lake. A row opens its conversation.",
        actions=button(data_do="dialog", data_opens="import-trace")["Import"],
        body=[
            form(".filters", method="get", action="/conversations", role="search")[
                text_field("q", "Words", words, data_search=True, placeholder="all of these words"),
                text_field("agent", "Agent", agent, placeholder="any"),
                text_field("channel", "Channel", channel, placeholder="any"),
                button["Search"],
            ],
            div(id="found-talks", data_live=True)[
                table
                if rows
                else show_empty(
                    "Nothing found" if words else "Nobody has written yet",
                    "Write to an agent in ",
                    a(".link", href="/chat")["Chat"],
                    ", or with ",
                    span(".mono")["postroom send"],
                    ".",
                )
            ],
            dialog("#import-trace", aria_label="Import")[
                form(".inside", method="post", action="/conversations/import")[
                    h2["Look at an exported conversation"],
                    p(".quiet")["A file that Export made, here or in another office."],
                    label[span["File"], input(type="file", accept="application/json", data_upload=True)],
                    div(".chips", aria_live="polite"),
                    div(".acts")[
                        button(type="button", data_do="close")["Cancel"], button(".primary")["Open"]
                    ],
                ]
            ],
        ],
    )


async def _found(visit: PortalVisit, words: str, agent: str, channel: str) -> list[dict]:
    """Newest first, each conversation once."""
    found: dict[str, dict] = {}
    if words:
        rows = await visit.services.insights.search(
            visit.caller, tuple(words.split()), agent=agent or None, channel=channel or None, limit=SHOWN
        )
        for row in rows:
            at = int(datetime.fromisoformat(row["created_at"]).timestamp() * 1_000_000)
            who = f"@{row['agent']}" if row["agent"] else row["sender"] or ""
            key = row["correlation_id"] or row["id"]
            found.setdefault(
                key, {"key": key, "text": row["text"], "who": who, "channel": row["channel"], "at": at}
            )
        return list(found.values())
    for row in await visit.services.conversations.history(visit.caller, agent or None, limit=SHOWN * 3):
        key = f"{row['channel']}:{row['message_id']}"
        if channel in ("", row["channel"]):
            who = f"{row['sender']} → @{row['agent_id']}" if row["role"] == "user" else f"@{row['agent_id']}"
            found.setdefault(
                key,
                {
                    "key": key,
                    "text": row["content"],
                    "who": who,
                    "channel": row["channel"],
                    "at": row["created_at"] * 1000,
                },
            )
    return list(found.values())[:SHOWN]


async def show_conversation(visit: PortalVisit) -> PageView:
    name = visit.path("name")
    view = visit.query("view", "tree")
    trace = await visit.services.conversations.trace(visit.caller, name, whole=view == "read")
    base = f"/conversations/{quote(name, safe='')}"
    first = next(iter(trace.roots), None)
    return PageView(
        title=cut(first.text, 80) if first else name,
        way="/conversations",
        crumb=("/conversations", "Conversations"),
        lead=span(".mono.small")[name],
        actions=[
            a(".button", href=f"{base}/trace.json", download=True)["Export"],
            act_button(
                "Stop",
                "/conversations/stop",
                {"conversation": name},
                kind="danger",
                confirm="Stop this conversation for good? What is open of it is cancelled.",
            ),
        ],
        body=draw_trace(trace, view, f"{base}?", visit.now),
    )


async def resume(visit: PortalVisit, form: SentForm) -> ActResult:
    moved = await visit.services.budgets.resume(visit.acting, form.word("conversation"))
    return ActResult(said=f"It goes on with {moved} messages.")


async def stop(visit: PortalVisit, form: SentForm) -> ActResult:
    count = await visit.services.budgets.stop(visit.acting, form.word("conversation"))
    return ActResult(said=f"Stopped; {count} messages were cancelled.")


async def export_trace(visit: PortalVisit) -> PageView:
    trace = await visit.services.conversations.trace(visit.caller, visit.path("name"), whole=True)
    document = msgspec.json.format(msgspec.json.encode(trace), indent=2)
    return PageView(title="", way="", body=None, file=document)


async def open_export(visit: PortalVisit, form: SentForm) -> ActResult:
    """The file is looked into before anything is shown, so that a wrong one is told of here."""
    path = form.word("files")
    if not path:
        raise InvalidField("file", "choose the JSON file that Export gave you")
    await _read_export(visit, path)
    return ActResult(to=f"/conversations/import?file={quote(path, safe='')}")


async def show_export(visit: PortalVisit) -> PageView:
    """A trace that was exported, as it stood then. Nothing of it is put into this office."""
    path = visit.query("file")
    if not path:
        raise InvalidField("file", "open one with Import on the page of conversations")
    trace = await _read_export(visit, path)
    return PageView(
        title=f"Exported: {trace.correlation_id}",
        way="/conversations",
        crumb=("/conversations", "Conversations"),
        lead=f"As it stood in the file {path.rpartition('/')[2]}; its messages are not in this office.",
        body=draw_trace(
            trace,
            visit.query("view", "tree"),
            f"/conversations/import?file={quote(path, safe='')}&",
            visit.now,
        ),
    )


async def _read_export(visit: PortalVisit, path: str) -> ConversationTrace:
    opened = await visit.services.files.open(visit.caller, path)
    with closing(opened.pieces()) as pieces:
        content = await asyncio.to_thread(lambda: b"".join(islice(pieces, MAX_EXPORT_PIECES)))
    try:
        return msgspec.json.decode(content, type=ConversationTrace)
    except msgspec.DecodeError:
        name = opened.found.name
        raise InvalidField("file", f"{name} is no trace; Export on a conversation's page makes one") from None


PART = PortalPart(
    {
        "/conversations": show_conversations,
        "/conversations/import": show_export,
        "/conversations/{name:path}/trace.json": export_trace,
        "/conversations/{name:path}": show_conversation,
    },
    {"/conversations/resume": resume, "/conversations/stop": stop, "/conversations/import": open_export},
)
