"""The server itself: how it is, its housekeepers, its store, pausing everybody, coming back anew."""

from htpy import Node, Renderable, a, code, div, p, span, td

from postroom import __version__
from postroom.portal.parts import (
    act_button,
    show_empty,
    show_figures,
    show_pairs,
    show_row,
    show_section,
    show_state,
    show_table,
)
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import show_ago, tell_size, tell_span
from postroom.runtime.queries import HousekeeperStatus
from postroom.services.backups import BackupCopy
from postroom.services.office_context import ProcessFacts


async def show_system(visit: PortalVisit) -> PageView:
    services, caller = visit.services, visit.caller
    status = await services.system.status(caller)
    counts = await services.workload.counts(caller)
    keepers = await services.housekeepers.list_all(caller)
    paused = (await services.budgets.overview(caller)).paused
    return PageView(
        title="System",
        way="/system",
        actions=[
            a(".button", href="/setup")["Set up"],
            a(".button", href="/docs")["API"],
            a(".button", href="/system/style")["Style"],
            act_button("Let everybody go on", "/needs/resume-all", kind="primary")
            if paused
            else act_button(
                "Pause everybody",
                "/needs/pause-all",
                confirm="No agent begins a turn until you let them. Go on?",
            ),
            act_button(
                "Restart",
                "/system/restart",
                kind="danger",
                confirm="Restart the server? Accepted messages are safe; this page comes back by itself.",
            ),
        ],
        body=div(".stack-l", id="system", data_live=True)[
            show_figures(
                ("waiting", f"{counts.incoming:,}"),
                ("being worked on", f"{counts.processing:,}"),
                ("done", f"{counts.completed:,}"),
                ("dead", f"{counts.dead:,}"),
                ("answers on their way", f"{counts.outgoing:,}"),
            ),
            show_section(
                "Server",
                show_pairs(
                    ("Version", __version__),
                    ("Runs for", tell_span(status.uptime / 1_000_000)),
                    ("Port", str(status.port)),
                    ("Health", code["/healthz  /readyz  /metrics"]),
                    ("Heartbeats", f"every {tell_span(status.interval_s)}" if status.interval_s else "off"),
                    ("Store", status.store or None),
                ),
            ),
            show_section(
                "Processes",
                show_table(
                    [*(["Host"] if status.host else []), "Process", "Does", "Version", ("Since", "num")]
                    + ([("Heard of", "num")] if status.host else []),
                    [_process(each, bool(status.host), visit.now) for each in status.processes],
                ),
                count=len(status.processes),
            )
            if status.processes
            else None,
            await _backups(visit),
            show_section(
                "Housekeepers",
                show_table(
                    ["Name", "Does", "Every", "Last run", ("Items", "num"), ("Runs", "num"), ""],
                    [_keeper(each, visit.now) for each in keepers],
                ),
                count=len(keepers),
            ),
        ],
    )


def _process(each: ProcessFacts, has_hosts: bool, now: int) -> Renderable:
    """On a database server, also those of other hosts, and when they were last heard of."""
    seen = show_state("dead", f"silent since {tell_span((now - each.seen_at) / 1_000_000)}")
    return show_row(
        td[each.host] if has_hosts else None,
        td(".mono")[str(each.pid)],
        td[", ".join(each.roles)],
        td(".quiet")[each.version],
        td(".num.quiet")[show_ago(each.started_at, now)],
        td(".num.quiet")[seen if each.silent else show_ago(each.seen_at, now)] if has_hosts else None,
    )


async def _backups(visit: PortalVisit) -> Node:
    """Only its owner may know where everything lies."""
    if not visit.caller.is_owner:
        return None
    copies = await visit.services.backups.list_all(visit.caller)
    return show_section(
        "Backups",
        show_table(
            ["Copy", ("Size", "num"), ("Made", "num"), ("Found sound", "num"), ""],
            [_backup(each, visit.now) for each in copies],
        )
        if copies
        else show_empty(
            "No copy was made here yet",
            "A copy is made while everybody works, and verified. For one of every commit: ",
            code["postroom backup --follow PLACE"],
        ),
        p(".quiet.small")["To go back to a copy: ", code["postroom stop && postroom restore FILE"]]
        if copies
        else None,
        count=len(copies),
        tools=act_button("Back up now", "/system/backup", kind="plain"),
    )


def _backup(each: BackupCopy, now: int) -> Renderable:
    return show_row(
        td(".mono.small", title=each.path)[each.name],
        td(".num")[tell_size(each.size_bytes)],
        td(".num.quiet")[show_ago(each.created_at, now)],
        td(".num.quiet")[show_ago(each.checked_at, now)],
        td(".num")[
            span(".gap")[
                act_button("Restore drill", "/system/drill", {"name": each.name}, kind="plain"),
                act_button(
                    "Remove",
                    "/system/remove-backup",
                    {"name": each.name},
                    kind="plain danger",
                    confirm=f"Remove {each.name}? It cannot be brought back.",
                ),
            ]
        ],
        row_id=f"backup-{each.name}",
    )


def _keeper(each: HousekeeperStatus, now: int) -> Renderable:
    well = show_state("dead", each.last_error) if each.last_error else show_ago(each.last_run_at, now)
    return show_row(
        td(".nowrap")[each.name],
        td(".text.quiet")[each.work],
        td(".nowrap.quiet")[tell_span(each.every_s)],
        td(".nowrap.quiet")[well],
        td(".num")[f"{each.total_items:,}"],
        td(".num.quiet")[f"{each.runs:,}"],
        td(".num")[act_button("Run now", "/system/housekeeper", {"name": each.name}, kind="plain")],
        row_id=f"keeper-{each.name}",
    )


async def run_housekeeper(visit: PortalVisit, form: SentForm) -> ActResult:
    done = await visit.services.housekeepers.run(visit.acting, form.word("name"))
    return ActResult(said=f"{form.word('name')} ran; {done} items.")


async def restart(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.system.restart(visit.acting)
    return ActResult(said="The server restarts. This page comes back by itself.")


async def back_up(visit: PortalVisit, form: SentForm) -> ActResult:
    made = await visit.services.backups.make(visit.acting)
    return ActResult(said=f"{made.name} is written and verified.")


async def drill(visit: PortalVisit, form: SentForm) -> ActResult:
    tried = await visit.services.backups.drill(visit.acting, form.word("name"))
    return ActResult(said=f"{tried.name} is sound: a restore would work.")


async def remove_backup(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.backups.remove(visit.acting, form.word("name"))
    return ActResult(said=f"{form.word('name')} is removed.")


PART = PortalPart(
    {"/system": show_system},
    {
        "/system/housekeeper": run_housekeeper,
        "/system/restart": restart,
        "/system/backup": back_up,
        "/system/drill": drill,
        "/system/remove-backup": remove_backup,
    },
)
