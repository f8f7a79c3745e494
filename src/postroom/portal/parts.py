"""What pages are put together from: states, buttons, tables, empty states. Each looks the same everywhere."""

from collections.abc import Iterable, Sequence
from typing import Any

from htpy import (
    Node,
    Renderable,
    b,
    button,
    code,
    dd,
    div,
    dl,
    dt,
    form,
    h2,
    input,
    kbd,
    label,
    option,
    section,
    select,
    span,
    table,
    tbody,
    textarea,
    th,
    thead,
    tr,
)

from postroom.portal.icons import draw_sign
from postroom.portal.words import tell_count

STATE_WORDS = {
    "pending": "waiting",
    "delayed": "delayed",
    "claimed": "working",
    "completed": "done",
    "dead": "dead",
    "expired": "expired",
    "cancelled": "cancelled",
}


def show_state(state: str, word: str = "") -> Renderable:
    return span(class_=f"state is-{state}")[draw_sign(state), word or STATE_WORDS.get(state, state)]


def show_face(name: str, *, busy: bool = False) -> Renderable:
    letters = "".join(part[0] for part in name.replace("-", " ").replace("_", " ").split()[:2]) or "?"
    return span(class_="face busy" if busy else "face", aria_hidden="true")[letters]


def show_tag(text: str, *, accent: bool = False) -> Renderable:
    return span(class_="tag accent" if accent else "tag")[text]


def act_button(
    word: str,
    action: str,
    fields: dict[str, str] | None = None,
    *,
    key: str = "",
    kind: str = "",
    confirm: str = "",
) -> Renderable:
    """A button that does something at once, after a question if it cannot be undone."""
    hidden = [input(type="hidden", name=name, value=value) for name, value in (fields or {}).items()]
    told = f"{word} ({key})" if key else None
    return form(method="post", action=action, data_confirm=confirm or None)[
        hidden, button(class_=kind or None, data_key=key or None, title=told)[word, key and kbd[key]]
    ]


def show_table(heads: Sequence[str | tuple[str, str]], rows: Iterable[Renderable]) -> Renderable:
    """`heads` are words, or words with the class of their column."""
    cells = [th(class_=head[1])[head[0]] if isinstance(head, tuple) else th[head] for head in heads]
    return div(".scroll", tabindex="0", role="region", aria_label="Table")[
        table[thead[tr[cells]], tbody[rows]]
    ]


def show_row(*cells: Node, row_id: str = "") -> Renderable:
    """A row that keys reach."""
    return tr(id=row_id or None, data_row=True, tabindex="-1")[cells]


def show_pairs(*pairs: tuple[str, Node]) -> Renderable:
    return dl(".pairs")[[(dt[name], dd[value]) for name, value in pairs if value is not None]]


def show_section(
    title: str, *body: Node, count: int | None = None, part_id: str = "", tools: Node = None
) -> Renderable:
    """A part of a page; with an id it is kept fresh."""
    return section(id=part_id or None, data_live=bool(part_id))[
        div(".head")[
            h2[title],
            span(".n")[f"{count:,}"] if count is not None else None,
            tools and span(".right")[tools],
        ],
        body,
    ]


def show_empty(title: str, *about: Node) -> Renderable:
    return div(".empty")[b[title], about]


def show_figures(*figures: tuple[str, str]) -> Renderable:
    return div(".figures")[[div[b[value], span[name]] for name, value in figures]]


def text_field(name: str, title: str, value: str = "", *, hint: str = "", **attributes: Any) -> Renderable:
    return label[
        span[title, hint and span(".hint")[f"  {hint}"]], input(name=name, value=value, **attributes)
    ]


def area_field(name: str, title: str, value: str = "", *, hint: str = "", **attributes: Any) -> Renderable:
    return label[
        span[title, hint and span(".hint")[f"  {hint}"]],
        textarea(name=name, **{"rows": "5", **attributes})[value],
    ]


def choice_field(
    name: str, title: str, choices: Sequence[tuple[str, str]], chosen: str = "", **attributes: Any
) -> Renderable:
    return label[
        span[title],
        select(name=name, **attributes)[
            [option(value=value, selected=value == chosen)[word] for value, word in choices]
        ],
    ]


def show_id(text: str) -> Renderable:
    return code[text]


def tell_found(count: int, what: str, more: bool) -> str:
    return f"{tell_count(count, what)}{' and more' if more else ''}"
