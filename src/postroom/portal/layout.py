"""The frame of every page: menu, head, dialogs. What a page says itself stands in the middle."""

from typing import Any

from htpy import (
    Element,
    Node,
    Renderable,
    a,
    aside,
    body,
    button,
    dialog,
    div,
    footer,
    form,
    h1,
    h2,
    head,
    header,
    html,
    input,
    kbd,
    link,
    main,
    meta,
    nav,
    p,
    pre,
    script,
    span,
    title,
    ul,
)

from postroom.errors import PostroomError
from postroom.portal.assets import asset_url
from postroom.portal.icons import MARK, draw_icon
from postroom.portal.parts import show_empty
from postroom.portal.visit import PageView, PortalVisit

MENU: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    ("", (("/", "Needs you", "needs"), ("/floor", "The floor", "floor"), ("/chat", "Chat", "chat"))),
    (
        "Work",
        (
            ("/conversations", "Conversations", "conversations"),
            ("/tasks", "Tasks", "tasks"),
            ("/schedules", "Schedules", "schedules"),
            ("/queues", "Queues", "queues"),
            ("/insights", "Insights", "insights"),
        ),
    ),
    (
        "Office",
        (
            ("/agents", "Agents and teams", "agents"),
            ("/memory", "Memory", "memory"),
            ("/channels", "Channels", "channels"),
            ("/rules", "Rules", "rules"),
            ("/providers", "Providers", "providers"),
        ),
    ),
    (
        "House",
        (
            ("/access", "Keys and access", "access"),
            ("/audit", "Audit", "audit"),
            ("/events", "Events and logs", "events"),
            ("/settings", "Settings", "settings"),
            ("/system", "System", "system"),
        ),
    ),
)
# What is the owner's alone to see.
OWNERS_PAGES = frozenset(
    {"/channels", "/rules", "/providers", "/access", "/audit", "/events", "/settings", "/memory"}
)
KEYS = (
    ("Command palette", "Ctrl K"),
    ("This list", "?"),
    ("Next, previous row", "j k"),
    ("Open the row", "Enter"),
    ("Search on the page", "/"),
    ("Fold the menu", "["),
    ("Pause live updates", "p"),
    ("Mark a row", "x"),
    ("Needs you", "g n"),
    ("Chat", "g c"),
    ("Conversations", "g o"),
    ("Queues", "g q"),
    ("Dead letters", "g d"),
    ("Tasks", "g t"),
    ("Agents", "g a"),
    ("Insights", "g i"),
    ("The floor", "g f"),
    ("Settings", "g s"),
    ("Answer in place", "1 … 9"),
    ("Try again, give up", "r d"),
)


async def render_page(visit: PortalVisit, page: PageView, seen: int | None = None) -> str:
    """`seen` is the last event that the page surely knows."""
    waiting = await visit.services.needs_you.count(visit.caller)
    return str(
        html(lang="en")[
            head[
                meta(charset="utf-8"),
                meta(name="viewport", content="width=device-width, initial-scale=1"),
                meta(name="csrf", content=visit.request.state.csrf),
                title[f"{f'({waiting}) ' if waiting else ''}{page.title} · Postroom"],
                link(rel="icon", href=asset_url("icon.svg")),
                link(rel="stylesheet", href=asset_url("portal.css")),
                script(src=asset_url("theme.js")),
                script(src=asset_url("portal.js"), defer=True),
            ],
            body(data_role=visit.role, data_seen=None if seen is None else str(seen))[
                a(".skip", href="#content")["Skip to the page"],
                _rail(page.way, waiting, visit.settings.workspace.name, visit.role),
                _content(page),
                button(".menu-button", data_do="menu", aria_label="Menu")[draw_icon("menu")],
                div("#notices", role="status", aria_live="polite"),
                _dialogs(),
            ],
        ]
    )


def _content(page: PageView) -> Element:
    if page.bare:
        return main("#content", tabindex="-1")[page.body]
    top = header(".page-head")[
        page.crumb and a(".crumb", href=page.crumb[0])[f"{page.crumb[1]} /"],
        h1[page.title],
        page.actions and div(".actions")[page.actions],
        page.lead and p(".lead")[page.lead],
    ]
    inside: Node = page.body
    if page.side is not None:
        inside = div(".with-side")[div(".stack-l")[page.body], aside(".side")[page.side]]
    kind = "page-body wide" if page.wide else "page-body"
    return main("#content", class_=kind, tabindex="-1")[top, inside]


def _rail(way: str, waiting: int, name: str, role: str) -> Renderable:
    def entry(path: str, word: str, icon: str) -> Renderable:
        count = None
        if path == "/" and waiting:
            count = span(".count.urgent", aria_label=f"{waiting} waiting")[str(waiting)]
        current = "page" if path == way else None
        return a(".page", href=path, aria_current=current, title=word)[
            draw_icon(icon), span(".text")[word], count
        ]

    return nav(".rail", id="rail", data_live=True, aria_label="Pages")[
        a(".brand", href="/")[MARK, span(".text.clip")["Postroom", name and span(".quiet")[f"  {name}"]]],
        [
            [h2[name] if name else None, [entry(*each) for each in entries if _is_for(each[0], role)]]
            for name, entries in MENU
        ],
        footer[
            div("#pulse.pulse", data_state="live")[span["Live"]],
            div(".foot-row")[
                _tool("palette", "search", "Search (Ctrl K)"),
                _tool("theme", "theme", "Light or dark"),
                _tool("fold", "fold", "Fold the menu ([)"),
                _tool("keys", "help", "Keyboard shortcuts (?)"),
                form(method="post", action="/logout")[
                    button(".plain", title="Log out", aria_label="Log out")[draw_icon("leave")]
                ],
            ],
        ],
    ]


def _is_for(path: str, role: str) -> bool:
    return role == "owner" or path not in OWNERS_PAGES


def _tool(doing: str, icon: str, word: str) -> Renderable:
    return button(".plain", data_do=doing, title=word, aria_label=word)[draw_icon(icon)]


def _dialogs() -> Node:
    return [
        dialog("#palette", aria_label="Command palette")[
            input(
                placeholder="Go to a page, agent, team or queue…",
                aria_label="Go to",
                role="combobox",
                aria_expanded="true",
                aria_controls="found",
                autocomplete="off",
            ),
            ul("#found", role="listbox", aria_label="Found"),
        ],
        dialog("#keys", aria_labelledby="keys-title")[
            div(".inside")[
                h2("#keys-title")["Keyboard shortcuts"],
                div(".keys")[
                    [div[span[what], span[[kbd[key] for key in keys.split()]]] for what, keys in KEYS]
                ],
                div(".acts")[button(data_do="close")["Close"]],
            ]
        ],
        dialog("#confirm", aria_label="Are you sure?")[
            form(".inside", method="dialog")[
                p, div(".acts")[button(value="no")["Cancel"], button(".accent", value="yes")["Yes"]]
            ]
        ],
        dialog("#secret", aria_label="A secret, shown once")[
            div(".inside")[
                p, pre(".body"), div(".picture"), div(".acts")[button(".primary", data_do="close")["Done"]]
            ]
        ],
    ]


def render_error(error: PostroomError, **view: Any) -> PageView:
    """What cannot be shown, as the sentence that says what to do."""
    status = error.http_status if error.http_status != 422 else 400
    return PageView(
        title="Not found" if status == 404 else "That did not work",
        way="",
        body=show_empty(str(error), a(".link", href="/")["Back to what needs you"]),
        status=status,
        **view,
    )
