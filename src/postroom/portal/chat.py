"""Chat with any agent or room: the whole history, the answer as it is written, and what it took."""

from collections import Counter
from urllib.parse import quote

from htpy import (
    Node,
    Renderable,
    a,
    article,
    b,
    button,
    details,
    div,
    form,
    h1,
    h2,
    header,
    input,
    label,
    nav,
    p,
    section,
    span,
    summary,
    textarea,
)

from postroom.kernel.states import State
from postroom.portal.files import file_url
from postroom.portal.icons import draw_icon
from postroom.portal.markdown import render_answer, render_markdown
from postroom.portal.parts import act_button, show_empty, show_face, show_state
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import show_ago, tell_count, tell_money, tell_span
from postroom.services.chats import ChatLine, TurnFacts, TurnInProgress
from postroom.services.conversations import Draft
from postroom.services.rooms import RoomEntry

LINES = 60
ROOM_LINES = 100


async def show_chat(visit: PortalVisit) -> PageView:
    agents = await visit.services.agents.directory(visit.caller)
    teams = (await visit.services.teams.list_all(visit.caller)).values()
    room = visit.query("room")
    chosen = visit.query("with") or (agents[0].id if agents and not room else "")
    working = await visit.services.chats.working(visit.caller)
    busy = {each.agent for each in working}

    def entry(path: str, name: str, word: str, current: bool) -> Renderable:
        return a(href=path, aria_current="page" if current else None)[
            show_face(name, busy=name in busy), span(".clip")[word]
        ]

    who = nav(".who", id="who", data_live=True, aria_label="Agents and rooms")[
        h2["Agents"],
        [
            entry(f"/chat?with={quote(each.id)}", each.id, each.name or each.id, each.id == chosen)
            for each in agents
        ],
        h2["Rooms"] if teams else None,
        [entry(f"/chat?room={quote(each.id)}", each.id, f"# {each.name}", each.id == room) for each in teams],
    ]
    picked = "chat" if visit.query("with") or room else "chat choosing"
    talk = await _room(visit, room) if room else await _agent(visit, chosen, working)
    return PageView(
        title=f"Chat with {room or chosen}", way="/chat", bare=True, body=div(class_=picked)[who, talk]
    )


async def _agent(visit: PortalVisit, agent: str, working: list[TurnInProgress]) -> Renderable:
    view = await visit.services.agents.get(visit.caller, agent)
    lines = await visit.services.chats.read(visit.caller, agent, limit=LINES, before=visit.number("before"))
    older = None
    if len(lines) >= LINES:
        older = a(".link.small", href=f"/chat?with={quote(agent)}&before={lines[0].number}")[
            "Show what came before"
        ]
    # A turn may have ended since it was looked for; then its answer stands among the lines.
    over = {each.number for each in lines if not each.is_agent and each.state != State.CLAIMED}
    turns = [each for each in working if each.agent == agent and each.number not in over]
    live = [_writing(each, visit.now) for each in turns]
    said: Node = [_said(each, visit.now) for each in lines]
    if not lines and not live:
        said = show_empty(
            f"Nothing said yet with {view.name}",
            "Write the first message below. Answers come here as they are written.",
        )
    return section(".talk")[
        header[
            a(".button.plain", href="/chat", aria_label="All chats")["‹"],
            h1[view.name],
            span(".quiet.clip")[f"@{agent} · {view.provider} {view.model}".strip()],
            a(".link.small.right", href=f"/agents/{quote(agent)}")["Agent"],
        ],
        div(".lines", id="lines", data_live=True, tabindex="0", role="log", aria_label="Messages")[
            older, said, live
        ],
        _composer(f"Write to @{agent}", {"with": agent}, can_steer=bool(live)),
    ]


async def _room(visit: PortalVisit, team: str) -> Renderable:
    view = await visit.services.teams.get(visit.caller, team)
    posts = await visit.services.rooms.read(visit.caller, team, limit=ROOM_LINES)
    said: Node = [_posted(each, visit.now) for each in reversed(posts)]
    return section(".talk")[
        header[
            a(".button.plain", href="/chat", aria_label="All chats")["‹"],
            h1[f"# {view.name}"],
            span(".quiet.clip")[", ".join(f"@{each}" for each in view.agents)],
            a(".link.small.right", href=f"/chat?with={quote(view.leader_agent)}")[
                f"Chat with @{view.leader_agent}"
            ],
        ],
        div(".lines", id="lines", data_live=True, tabindex="0", role="log", aria_label="Messages")[
            said
            if posts
            else show_empty("The room is empty", "What you write here reaches every member of the team.")
        ],
        _composer(f"Write to everybody in # {view.name}", {"room": team}),
    ]


def _composer(word: str, fields: dict[str, str], *, can_steer: bool = False) -> Renderable:
    """While a turn goes on, what is written can also be put into it at once."""
    steer = button(
        name="steers", value="yes", title="Into the turn that goes on, or it begins again with this"
    )["Steer"]
    return div(".composer")[
        form(method="post", action="/chat/send", data_reset=True)[
            [input(type="hidden", name=name, value=value) for name, value in fields.items()],
            textarea(
                name="text",
                rows="2",
                required=True,
                placeholder=word,
                aria_label=word,
                data_enter=True,
                data_search=True,
                autofocus=True,
            ),
            div(".chips", aria_live="polite"),
            div(".acts")[
                span(".quiet.small.wide-only")["Enter sends, Shift Enter begins a line"],
                "with" in fields
                and label(".button.plain", title="Attach files")[
                    draw_icon("clip"),
                    input(".unseen", type="file", multiple=True, aria_label="Attach files", data_upload=True),
                ],
                span(id="steer", data_live=True)[can_steer and steer],
                button(".primary")["Send"],
            ],
        ]
    ]


def _said(line: ChatLine, now: int) -> Renderable:
    return article(".said", id=f"line-{line.number}")[
        show_face(line.author),
        div(".meta")[
            span[b[line.author]],
            line.channel != "web" and not line.is_agent and span[line.channel],
            show_ago(line.created_at, now),
            _standing(line),
        ],
        div(".prose")[render_answer(line.text) if line.is_agent else render_markdown(line.text)],
        _facts(line),
    ]


def _standing(line: ChatLine) -> Node:
    """Of what a person wrote, unless it was simply answered."""
    if line.is_agent or line.state in ("completed", ""):
        return None
    return span(title=line.reason or None)[show_state(line.state)]


def _facts(line: ChatLine) -> Node:
    facts = [tell_turn(line.turn)] if line.turn is not None else []
    files = [
        a(href=file_url(path), download=True)[draw_icon("clip"), path.rpartition("/")[2]]
        for path in line.files
    ]
    way = (
        line.is_agent
        and line.conversation
        and a(href=f"/conversations/{quote(line.conversation, safe='')}")["trace"]
    )
    if not (facts or files or way):
        return None
    return [fold_tools(line.turn), div(".facts")[facts, files, way]]


def tell_turn(turn: TurnFacts) -> Renderable:
    words = [tell_span(turn.took / 1_000_000)]
    if turn.tokens:
        words.append(tell_count(turn.tokens, "token"))
    if turn.cost_usd is not None:
        words.append(tell_money(turn.cost_usd))
    return span[" · ".join(words)]


def fold_tools(turn: TurnFacts | TurnInProgress | None) -> Node:
    """13 commands, 6 reads: what was used how often, and in which order behind it."""
    if turn is None or not turn.tools:
        return None
    counts = Counter(turn.tools)
    told = ", ".join(f"{count} × {tool}" for tool, count in counts.most_common(4))
    return details[summary[f"Used {told}"], p[" → ".join(turn.tools)]]


def _writing(turn: TurnInProgress, now: int) -> Renderable:
    return article(".said", id="writing")[
        show_face(turn.agent, busy=True),
        div(".meta")[
            b[turn.agent],
            show_state("claimed", f"working, {tell_span((now - turn.started_at) / 1_000_000)}"),
            act_button(
                "Stop",
                "/chat/stop",
                {"number": str(turn.number)},
                kind="plain danger",
                confirm="Stop this turn? The message is not tried again.",
            ),
        ],
        div(".prose")[render_answer(turn.text)] if turn.text else p(".quiet")["…"],
        fold_tools(turn),
    ]


def _posted(post: RoomEntry, now: int) -> Renderable:
    return article(".said", id=f"post-{post.number}")[
        show_face(post.author),
        div(".meta")[b[post.author], show_ago(post.created_at * 1000, now)],
        div(".prose")[render_answer(post.text)],
    ]


async def send(visit: PortalVisit, form: SentForm) -> ActResult:
    text = form.text("text")
    if form.word("room"):
        await visit.services.rooms.write(visit.acting, form.word("room"), text)
        return ActResult()
    draft = Draft(
        text=text,
        channel="web",
        sender="Web",
        sender_id="web",
        agent=form.word("with") or None,
        files=tuple(form.every("files")),
        steers=form.word("steers") == "yes",
    )
    sent = await visit.services.conversations.send(visit.acting, draft)
    return ActResult(said=sent.notice or "")


async def stop(visit: PortalVisit, form: SentForm) -> ActResult:
    number = form.word("number")
    agent = await visit.services.workload.kill(visit.acting, int(number) if number.isdecimal() else 0)
    return ActResult(said=f"@{agent} stopped.")


PART = PortalPart({"/chat": show_chat}, {"/chat/send": send, "/chat/stop": stop})
