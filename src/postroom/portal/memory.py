"""Memory: what agents wrote down for later, as their index shows it, and a search of everything said."""

from typing import Any
from urllib.parse import quote

from htpy import Node, a, button, code, div, form, li, span, td, ul

from postroom.portal.markdown import render_markdown
from postroom.portal.parts import (
    choice_field,
    show_empty,
    show_face,
    show_row,
    show_section,
    show_table,
    text_field,
)
from postroom.portal.visit import PageView, PortalPart, PortalVisit
from postroom.portal.words import cut, show_ago
from postroom.services.agent_hosts import AgentElsewhere


async def show_memory(visit: PortalVisit) -> PageView:
    agents = await visit.services.agents.directory(visit.caller)
    chosen = visit.query("agent") or (agents[0].id if agents else "")
    words = visit.query("q")
    rows = await visit.services.conversations.search(visit.caller, words, 30) if words else []
    return PageView(
        title="Memory",
        way="/memory",
        lead="Agents keep notes as files in their folders; what was said stays searchable for good.",
        body=div(".stack-l")[
            form(".filters", method="get", action="/memory", role="search")[
                choice_field(
                    "agent", "Agent", [(each.id, f"@{each.id}") for each in agents], chosen, data_submit=True
                ),
                text_field("q", "What was said", words, data_search=True, placeholder="words to recall"),
                button["Search"],
            ],
            words
            and show_section(
                "Said",
                show_table(
                    ["Who", "What", ("When", "num")],
                    [
                        show_row(
                            td(".nowrap")[
                                f"@{row['agent_id']}" if row["role"] == "assistant" else row["sender"]
                            ],
                            td(".text")[a(href=_way(row))[cut(row["content"], 240)]],
                            td(".num.quiet")[show_ago(row["created_at"] * 1000, visit.now)],
                        )
                        for row in rows
                    ],
                )
                if rows
                else show_empty("Nothing with all these words"),
                count=len(rows),
            ),
            await _show_notes(visit, chosen),
        ],
    )


async def _show_notes(visit: PortalVisit, chosen: str) -> Node:
    try:
        memory = await visit.services.agents.read_memory(visit.caller, chosen)
    except AgentElsewhere as elsewhere:
        return div(".banner")[str(elsewhere)]
    return show_section(
        f"Notes of @{chosen}",
        span(".gap.small.quiet")[show_face(chosen), code[memory.folder]],
        div(".prose")[render_markdown(memory.index)] if memory.files else None,
        ul[[li[code[path]] for _, path in memory.files]]
        if memory.files
        else show_empty(
            "No notes yet",
            "Agents write Markdown files into this folder; they are listed here and in the prompt.",
        ),
        count=len(memory.files),
        part_id="notes",
    )


def _way(row: dict[str, Any]) -> str:
    return f"/conversations/{quote(row['channel'] + ':' + row['message_id'], safe='')}"


PART = PortalPart({"/memory": show_memory})
