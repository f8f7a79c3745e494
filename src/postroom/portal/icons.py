"""Small drawings: one for each page, one sign for each state. All are our own, on a grid of 16."""

from markupsafe import Markup

_PATHS = {
    "needs": "M2.5 9.5h3l1 2h3l1-2h3M2.5 9.5 4 3.5h8l1.5 6v3h-11z",
    "floor": "M2 13.5V6l6-3.5L14 6v7.5M2 13.5h12M6 13.5v-4h4v4",
    "chat": "M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z",
    "conversations": "M5 3v10M5 5h6M5 9h4M11 5v0M3.5 3h3M9 9v3h4",
    "queues": "M2.5 4h11M2.5 8h11M2.5 12h7",
    "dead": "M4 4l8 8M12 4l-8 8",
    "insights": "M2.5 13.5h11M4.5 11V7.5M8 11V3.5M11.5 11V6",
    "tasks": "M2.5 3h3v10h-3zM6.5 3h3v6h-3zM10.5 3h3v8h-3z",
    "schedules": "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM8 5v3l2 1.5",
    "memory": "M4 2.5h8.5v11H4a1.5 1.5 0 0 1-1.5-1.5V4A1.5 1.5 0 0 1 4 2.5zM5.5 5.5h4M5.5 8h4",
    "agents": "M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 13.5c.5-2.5 2.5-3.5 5-3.5s4.5 1 5 3.5",
    "channels": "M2.5 6.5v3l6 3v-9zM8.5 3.5 13 2.5v11l-4.5-1",
    "rules": "M3 4h4l2 8h4M3 12h4M11 4h2",
    "providers": "M5 2.5v3M11 2.5v3M3.5 5.5h9v2a4.5 4.5 0 0 1-9 0zM8 12v2",
    "access": "M10.5 9a3.5 3.5 0 1 0-3.3-2.3L2.5 11.5v2h2v-1.5h1.5v-1.5h1.5l1-1",
    "audit": "M4 2.5h6l2.5 2.5v8.5h-8.5zM6 7h4.5M6 9.5h4.5",
    "events": "M1.5 8h3l2-5 3 10 2-5h3",
    "settings": "M2.5 4.5h6M11.5 4.5h2M2.5 11.5h2M7.5 11.5h6M10 4.5m-1.5 0a1.5 1.5 0 1 0 3 0 1.5 1.5 0 1 0-3 0M6 11.5m-1.5 0a1.5 1.5 0 1 0 3 0 1.5 1.5 0 1 0-3 0",
    "system": "M2.5 3.5h11v4h-11zM2.5 9.5h11v3.5h-11zM5 5.5v0M5 11.2v0",
    "clip": "M12.5 7 7.6 11.9a2.6 2.6 0 0 1-3.7-3.7l5.4-5.4a1.7 1.7 0 0 1 2.4 2.4L6.4 10.5a.8.8 0 0 1-1.1-1.1L10 4.7",
    "theme": "M8 2.5v11A5.5 5.5 0 0 0 8 2.5zM8 13.5a5.5 5.5 0 0 1 0-11",
    "fold": "M2.5 3h11v10h-11zM6 3v10",
    "search": "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5l3 3",
    "leave": "M9 2.5h-6v11h6M7 8h6.5M11 5.5 13.5 8 11 10.5",
    "menu": "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
    "help": "M6 6a2 2 0 1 1 2.5 2c-.5.2-.5.6-.5 1.2M8 11.5v0M8 14a6 6 0 1 0 0-12 6 6 0 0 0 0 12z",
}  # fmt: skip
_SIGNS = {
    "pending": '<circle cx="6" cy="6" r="4.5"/>',
    "delayed": '<circle cx="6" cy="6" r="4.5"/><path d="M6 3.5V6l1.6 1.2"/>',
    "claimed": '<circle cx="6" cy="6" r="4.5" opacity=".3"/><path class="turning" d="M6 1.5A4.5 4.5 0 0 1 10.5 6"/>',
    "completed": '<path d="M2 6.5 5 9.5 10.5 3"/>',
    "dead": '<path d="M2.5 2.5l7 7M9.5 2.5l-7 7"/>',
    "expired": '<path d="M3 1.5h6M3 10.5h6M3.5 1.5c0 4 5 5 5 9M8.5 1.5c0 4-5 5-5 9"/>',
    "cancelled": '<circle cx="6" cy="6" r="4.5"/><path d="M3 9 9 3"/>',
    "accent": '<path d="M6 1.5v5.5M6 10v.3"/>',
}  # fmt: skip


def draw_icon(name: str) -> Markup:
    return Markup(
        f'<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="{_PATHS[name]}"/></svg>'
    )


def draw_sign(state: str) -> Markup:
    return Markup(f'<svg viewBox="0 0 12 12" aria-hidden="true">{_SIGNS[state]}</svg>')


MARK = Markup(
    '<svg viewBox="0 0 20 20" aria-hidden="true"><rect class="mark" x="1" y="3.5" width="18" height="13" rx="2.5"/>'
    '<path class="flap" d="M2.5 5.5 10 11.5l7.5-6"/></svg>'
)

__all__ = ["MARK", "draw_icon", "draw_sign"]
