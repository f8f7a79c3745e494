"""Under `--json` every time is ISO 8601: all commands are run on an office where much has happened."""

import asyncio
import json
import re
import shlex
import time
from collections.abc import Iterator
from typing import Any

import postroom
from postroom.clock import SystemClock
from postroom.office.pairing import Pairings
from tests.terminal.cli.runner import Cli
from tests.terminal.cli.test_help import COMMANDS

# What is typed, in this order; behind => stands which parts of the answer are used below.
LINES = """
version
update
doctor
status
agent add coder --provider script
agent list
agent show coder
agent set coder --name Coder
agent provider coder
agent add old --provider script
agent remove old --yes
agent backups
agent restore old
agent reset coder
reset coder
team add dev coder assistant
team list
team show dev
team remove-agent dev assistant
team add-agent dev assistant
team add spare old
team remove spare --yes
project add Web                                     => project=id
project list
project set {project} --name Site
task add 'Write it'                                 => task=id
task list
task set {task} --status in_progress --project {project}
task comment {task} hello
task show {task}
task remove {task} --yes
project remove {project} --yes
room post dev hello
room list
room read dev
memory list coder
memory show coder notes.md
memory search coder harbour
schedule add coder 'good morning' --cron '0 9 * * *' --label morning
schedule list
schedule pause morning
schedule resume morning
schedule run morning
schedule remove morning --yes
schedule add coder once --at 2099-01-01T09:00:00Z
schedule list --agent coder
heartbeat
guards list
guards pause-all
guards resume-all
pairing list                                        => code=pending.0.code
pairing pending
pairing approve {code}
pairing approved
pairing role telegram 7001 guest
pairing unpair telegram 7001 --yes
pairing list                                        => code=pending.0.code
pairing dismiss {code}
channel list
channel status
channel unconfirmed
settings show
settings list
settings get default_agent
settings set default_agent coder
settings unset default_agent
provider show
provider list
provider set script
provider add own --url http://127.0.0.1:9/v1
provider remove own --yes
model
plugins list
send '@coder hello' --wait                          => sent=messageId
inbox
trace {sent}
why {sent}
show {sent}
history search hello
scope create shop
scope list
scope pause shop
scope resume shop
scope create spare
scope archive spare
scope unarchive spare
scope delete spare
queue create shop/orders --max-retries 1
queue list
queue show shop/orders
queue set shop/orders --max-depth 99
queue pause shop/orders
queue resume shop/orders
queue create shop/old
queue drain shop/old
queue resume shop/old
queue archive shop/old
queue unarchive shop/old
queue delete shop/old
queue schedule shop/nightly shop/orders 1 --cron '0 3 * * *'
queue schedules --scope shop
queue run-schedule shop/nightly
queue unschedule shop/nightly
schema add shop/order schema.json
schema list --scope shop
rule add rule.json --scope shop                     => rule=id
rule list --scope shop
rule show {rule} --scope shop
rule test rule.json --scope shop --last 5
rule disable {rule} --scope shop
rule enable {rule} --scope shop
rule remove {rule} --scope shop
queue create shop/news --mode broadcast
subscribe shop/news mailer
unsubscribe shop/news mailer
publish shop/orders 7 --ttl 1h --deadline 2h
publish shop/orders 8 --delay 1h                    => later=id
peek shop/orders
claim shop/orders                                   => id=0.id token=0.claim_token
extend {id} {token}
release {id} {token}
claim shop/orders                                   => id=0.id token=0.claim_token
snooze {id} {token} 0
claim shop/orders                                   => id=0.id token=0.claim_token
fail {id} {token} refused --final
dead list
dead replay {id}
claim shop/orders                                   => id=0.id token=0.claim_token
complete {id} {token} --result true
list
show {id}
show {later}
why {later}
trace {id}
cancel {later}
publish shop/orders 9                               => id=id
claim shop/orders                                   => id=0.id token=0.claim_token
fail {id} {token} refused --final
dead discard {id} --yes
publish shop/orders 1 --hitl-spec '{spec}'          => review=id
review list --scope shop
review show {review}
review answer {review} decision=yes
review pattern add ask 1.0 pattern.json
review pattern list
review pattern preview ask
key create till --permission view --expires 90d     => key=id
key list
key rotate {key}
key revoke {key}
audit list
pipeline status
ledger head
ledger tail
ledger verify
store info
housekeepers
housekeepers --run all
backup copy.db
erase body.order 7 --scope shop --yes
logs
"""


# These are not typed here: what they need, and what they are.
ELSEWHERE = {
    "a server": "start | stop | restart | login | office | chat | top | chatroom | team visualize",
    "questions to a person, or a provider": "setup | demo | provider test | plugins allow | plugins forbid",
    "a platform": "channel test | channel setup | channel reset",
    "a channel of a server": "channel start | channel stop | channel restart",
    "replies that no platform confirmed": "channel resend | channel dismiss",
    "conversations that were stopped": "guards continue | guards stop | guards raise",
    "another store, or another program's office": "store move | restore | import tinyagi | import tinyclaw",
    "an office on a database server": "join | token rotate | agent move",
    "an editor": "settings edit",
    "a program that goes on": "worker",
    "Spark or a lake": (
        "pipeline run | pipeline backfill | pipeline verify | pipeline watch | pipeline query"
        " | pipeline report | pipeline compact | pipeline vacuum | pipeline retain | pipeline prune"
        " | pipeline erase | pipeline backtest | pipeline replay"
        " | pipeline generate | pipeline describe | pipeline catalog"
    ),
}
# Names that programs of others read as numbers, and the ISO time that stands beside each.
BESIDE = {
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "approvedAt": "approved_at",
    "lastSeenAt": "last_seen_at",
    "startedAt": "started_at",
    "since": "paused_at",
    "last": "last_at",
}
# The facts of an event are what its hash is over, and are shown as they were written.
FACTS = re.compile(r"(^|\.)(events\[\]\.)?data\.")
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
FILES = {
    "schema.json": {"type": "object"},
    "rule.json": {"name": "r", "expression": 'labels.tier == "x"', "action": {"type": "archive"}},
    "pattern.json": {"sections": [{"type": "decision", "field": "decision", "options": ["yes", "no"]}]},
}


def find_epochs(document: Any, now: float, path: str = "") -> Iterator[str]:
    """Where numbers are a moment of this year in seconds, milli- or microseconds, whatever they are called;
    not where the same stands beside it in ISO 8601."""
    if isinstance(document, list):
        for each in document:
            yield from find_epochs(each, now, f"{path}[]")
    if not isinstance(document, dict):
        return
    for name, each in document.items():
        place = f"{path}.{name}".lstrip(".")
        if isinstance(each, dict | list):
            yield from find_epochs(each, now, place)
        elif isinstance(each, int | float) and is_moment(each, now) and not name.endswith(("bytes", "size")):
            beside = document.get(BESIDE.get(name, ""))
            if not (isinstance(beside, str) and ISO.fullmatch(beside)) and not FACTS.search(place):
                yield place


def is_moment(number: float, now: float) -> bool:
    return any(abs(number / unit - now) < 400 * 86400 for unit in (1, 1e3, 1e6))


def test_a_number_that_is_a_time_would_be_found() -> None:
    now = 1_800_000_000
    told = {"a": [{"at": now}], "b_ms": now * 1000, "n": 5, "free_bytes": now, "createdAt": now * 1000}
    assert list(find_epochs(told, now)) == ["a[].at", "b_ms", "createdAt"]
    assert list(find_epochs({"createdAt": now, "created_at": "2027-01-15T08:00:00.000Z"}, now)) == []


async def let_strangers_in(cli: Cli) -> None:
    async with postroom.open(str(cli.store)) as room:
        for number in ("7001", "7002"):
            await Pairings(room, SystemClock()).admit("telegram", number, "Ben")


def pick(document: Any, way: str) -> str:
    for step in way.split("."):
        document = document[int(step)] if step.isdecimal() else document[step]
    return str(document)


def test_every_time_under_json_is_iso_8601(cli: Cli) -> None:
    for name, content in FILES.items():
        (cli.folder / name).write_text(json.dumps(content), "utf-8")
    known = {"spec": json.dumps(FILES["pattern.json"])}
    found: dict[str, list[str]] = {}
    typed: set[str] = set()
    for line in LINES.strip().splitlines():
        words, _, keep = line.partition("=>")
        given = [word.format(**known) for word in shlex.split(words)]
        if given == ["memory", "list", "coder"]:
            note = cli.home / "workspace" / "coder" / "memory" / "notes.md"
            note.write_text("The harbour is closed on Sundays.\n", "utf-8")
        if given[0] == "pairing" and "pairing list" not in typed:
            asyncio.run(let_strangers_in(cli))
        done = cli(*given, "--json")
        assert done.code == (4 if given == ["status"] else 0), f"{line}: {done.err}"
        documents = [json.loads(each) for each in done.out.splitlines()]
        epochs = {place for each in documents for place in find_epochs(each, time.time())}
        if epochs:
            found[" ".join(given)] = sorted(epochs)
        known |= {
            name: pick(documents[-1], way) for name, _, way in (part.partition("=") for part in keep.split())
        }
        typed.add(find_command(given))
    assert found == {}
    elsewhere = {name.strip() for names in ELSEWHERE.values() for name in names.split("|")}
    all_of_them = {
        " ".join(path) for path, each in COMMANDS.items() if not each.hidden and path[0] != "channels"
    }
    assert all_of_them - elsewhere - typed == set(), "type them above, or say why not"
    assert elsewhere & typed == set()


def find_command(words: list[str]) -> str:
    return next(" ".join(words[:size]) for size in (3, 2, 1) if tuple(words[:size]) in COMMANDS)
