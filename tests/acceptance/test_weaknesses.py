"""What was weak in the system we follow, and the test that keeps each weakness out of the office.

W2, W7, W8, W13, W22, W26, W27, W30, W31, W35, W36, W37 and W40 are of the API, the channels, the daemon, the
portal, the pipeline or the installation, and are not listed here. `KEPT` is the table; where a promise is
kept by several tests, it names the one that would fail first. The tests below are for what had none.
"""

import logging
from pathlib import Path
from typing import Any

import pytest

from postroom import State
from postroom.providers.protocol import Cause, ErrorKind, Failed, TurnRequest
from postroom.providers.registry import ProviderSettings
from postroom.providers.script_rules import ScriptRule
from tests.acceptance.crashes.campaign import orphans, programs
from tests.acceptance.office import AGENTS, Cast, Puppet, content, signed, staffed, text, until

HERE = "acceptance/test_weaknesses.py"
KEPT = {
    "W1 a failure is a failure": (HERE, "test_no_failure_is_taken_for_an_answer"),
    "W3 barriers stay up": (
        "providers/test_every_program.py",
        "test_barriers_stay_up_unless_they_are_lifted",
    ),
    "W4 files leave only from where they may": (
        "acceptance/test_replies.py",
        "test_a_file_that_may_not_leave_is_refused_in_words",
    ),
    "W5 no path tricks": ("settings/test_model.py", "test_what_is_no_id_is_refused"),
    "W6 no secrets, no texts in logs": (HERE, "test_what_people_write_stays_out_of_the_logs"),
    "W9 nothing grows for ever": (HERE, "test_replies_that_nobody_fetches_have_an_end"),
    "W10 a hung agent is freed": (HERE, "test_a_turn_that_hangs_is_ended_and_its_agent_goes_on"),
    "W11 one message is cancelled, and no other": (
        "acceptance/test_lanes.py",
        "test_cancelling_a_message_ends_its_turn_at_once_and_sends_nothing",
    ),
    "W12 one turn at a time": (
        "acceptance/test_lanes.py",
        "test_two_offices_take_one_turn_at_a_time_for_an_agent",
    ),
    "W14 a result alone is an answer": (HERE, "test_a_turn_that_says_only_its_result_is_answered"),
    "W15 one final answer, or more if wanted": (
        "acceptance/test_replies.py",
        "test_by_default_only_the_final_answer_is_sent",
    ),
    "W16 the prefix goes, the team stays": (HERE, "test_a_leader_of_two_teams_works_for_the_one_addressed"),
    "W17 loops end": (
        "acceptance/test_guards.py",
        "test_agents_that_hand_the_same_back_and_forth_are_paused",
    ),
    "W18 posts are read together": ("acceptance/test_rooms.py", "test_posts_that_wait_are_read_in_one_turn"),
    "W19 nobody reads another's session": (
        "acceptance/test_patterns.py",
        "test_with_sessions_per_sender_two_people_never_share_one",
    ),
    "W20 more than one process": (
        "acceptance/test_lanes.py",
        "test_a_frozen_office_loses_its_turn_after_the_lease_and_its_late_result_is_refused",
    ),
    "W21 usage and cost are kept": (
        "acceptance/test_patterns.py",
        "test_every_turn_is_recorded_with_its_usage_and_cost",
    ),
    "W23 settings are not lost": ("settings/test_file.py", "test_no_change_of_many_writers_is_lost"),
    "W24 heartbeats do not pile up": (
        "office/test_heartbeats.py",
        "test_an_agent_that_has_not_answered_is_not_asked_again",
    ),
    "W25 there are tests": (HERE, "test_every_promise_of_the_table_has_its_test"),
    "W28 a removed agent leaves a backup": (
        "office/agents/test_backups.py",
        "test_a_removed_agent_comes_back_as_it_was",
    ),
    "W29 prompts are no arguments": (
        "providers/test_every_program.py",
        "test_the_prompt_travels_on_stdin_and_never_in_the_arguments",
    ),
    "W32 no time is lost": (
        "office/schedules/test_crashes.py",
        "test_no_time_is_lost_or_doubled_when_processes_are_killed",
    ),
    "W33 a first turn continues nothing": (HERE, "test_a_first_turn_begins_a_new_session"),
    "W34 an agent has one folder": (HERE, "test_an_agent_works_where_its_settings_say_and_sends_from_there"),
    "W38 an agent reaches all its teams": (HERE, "test_an_agent_of_two_teams_reaches_the_members_of_both"),
    "W39 other providers": (
        "providers/test_registry.py",
        "test_an_id_gives_its_provider_and_always_the_same",
    ),
    "W41 code runs only when it is allowed": (
        "office/plugins/test_loading.py",
        "test_nothing_runs_unless_it_is_named",
    ),
    "W42 no child outlives its office": (HERE, "test_a_stop_ends_all_that_a_turn_has_started"),
}


@pytest.mark.parametrize("promise", KEPT)
def test_every_promise_of_the_table_has_its_test(promise: str) -> None:
    file, name = KEPT[promise]
    source = (Path(__file__).parents[1] / file).read_text("utf-8")
    assert f"def {name}(" in source


FINAL = (ErrorKind.AUTH, ErrorKind.REFUSED, ErrorKind.NOT_INSTALLED, ErrorKind.INVALID)
PASSING = (ErrorKind.CRASHED, ErrorKind.OVERLOADED, ErrorKind.TIMED_OUT)


@pytest.mark.parametrize("kind", [*FINAL, *PASSING])
async def test_no_failure_is_taken_for_an_answer(tmp_path: Path, kind: ErrorKind) -> None:
    """It is tried as often as makes sense, buried with its cause, and told with a way to try again."""
    puppet = Puppet(lambda request: [Failed(kind=kind, message="It did not work.")])
    options: dict[str, Any] = {
        "agents": {"coder": {"provider": "puppet"}},
        "teams": {},
        "guards": {"attempts": 3},
    }
    async with staffed(tmp_path, puppets={"puppet": puppet}, **options) as desk:
        await desk.room.update_queue("office/inbox/coder", backoff_base_s=0.01)
        sent = await desk.write("@coder hello")
        [told] = await desk.replies(1)
        assert told.message_type == "office.failure"
        assert "It did not work." in text(told)
        assert f"postroom dead replay {sent.receipts[0].id}" in text(told)
        dead = await desk.room.get(sent.receipts[0].id)
        assert (dead.state, dead.failure_kind) == (State.DEAD, kind)
        assert len(puppet.asked) == (1 if kind in FINAL else 3)
        await desk.settled()
        assert len(await desk.replies(1)) == 1


async def test_a_dead_letter_that_is_sent_again_is_answered(tmp_path: Path) -> None:
    failing = [True]

    def act(request: TurnRequest) -> Any:
        return [Failed(kind=ErrorKind.AUTH, message="Log in first.")] if failing else "Here I am."

    options: dict[str, Any] = {"agents": {"coder": {"provider": "puppet"}}, "teams": {}}
    async with staffed(tmp_path, puppets={"puppet": Puppet(act)}, **options) as desk:
        sent = await desk.write("@coder hello")
        await desk.replies(1)
        failing.clear()
        await desk.room.replay(sent.receipts[0].id)
        assert text((await desk.replies(2))[1]) == "Here I am.\n\n- [coder]"


async def test_what_people_write_stays_out_of_the_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def act(request: TurnRequest) -> Any:
        if "bug" in request.prompt:
            raise RuntimeError("a bug")
        return "the answer is Rumpelstiltskin"

    caplog.set_level(logging.DEBUG)
    options: dict[str, Any] = {
        "agents": {"coder": {"provider": "puppet"}},
        "teams": {},
        "guards": {"attempts": 1},
    }
    async with staffed(tmp_path, puppets={"puppet": Puppet(act)}, **options) as desk:
        await desk.write("@coder my name is Rumpelstiltskin")
        await desk.replies(1)
        await desk.write("@coder the bug of Rumpelstiltskin")
        await desk.replies(2)
    assert "could not be served" in caplog.text
    assert "Rumpelstiltskin" not in caplog.text


async def test_replies_that_nobody_fetches_have_an_end(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(agent="coder", reply="ok")) as desk:
        await desk.write("@coder hello", channel="cli")
        [reply] = await desk.replies(1, channel="cli")
        assert reply.expires_at is not None
        await desk.write("@coder how are you", channel="heartbeat", sender="System")
        everything = await desk.quiet()
        assert not [m for m in everything if m.queue == "outbox/heartbeat"], "nobody would ever read them"


async def test_a_turn_that_hangs_is_ended_and_its_agent_goes_on(tmp_path: Path) -> None:
    rules = [ScriptRule(agent="coder", match="hang", hang=True), ScriptRule(agent="coder", reply="Here.")]
    guards = {"idle_timeout_s": 1.0, "attempts": 1}
    async with staffed(tmp_path, *rules, guards=guards) as desk:
        await desk.write("@coder hang")
        await desk.write("@coder hello", sender_id="bob")
        replies = {m.sender_id: m for m in await desk.replies(2)}
        assert "gave no sign of life" in text(replies["ann"])
        assert text(replies["bob"]) == "Here.\n\n- [coder]"
        turns = [turn.data for turn in await desk.room.records("turn")]
        assert (turns[0]["outcome"], turns[0]["cause"]) == (ErrorKind.TIMED_OUT, Cause.IDLE)


async def test_a_turn_that_says_only_its_result_is_answered(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: "Only this.")
    options: dict[str, Any] = {"agents": {"coder": {"provider": "puppet"}}, "teams": {}}
    async with staffed(tmp_path, puppets={"puppet": puppet}, **options) as desk:
        await desk.write("@coder hello")
        assert [text(m) for m in await desk.replies(1)] == ["Only this.\n\n- [coder]"]


TWO_TEAMS = {
    "dev": {"agents": ["lead", "coder"], "leader_agent": "lead"},
    "ops": {"agents": ["lead", "reviewer"], "leader_agent": "lead"},
}


async def test_a_leader_of_two_teams_works_for_the_one_addressed(tmp_path: Path) -> None:
    rules = [ScriptRule(agent="lead", reply="heard: $prompt", hand_off={"reviewer": "go"})]
    async with staffed(tmp_path, *rules, teams=TWO_TEAMS) as desk:
        await desk.write("@ops restart the server")
        replies = signed(await desk.replies(2))
        assert replies["lead"].startswith("heard: [For team #ops]:\nrestart the server\n"), (
            "without the prefix"
        )
        mail = {m.queue: m for m in await desk.quiet()}
        assert mail["inbox/lead"].body["team"] == "ops"
        assert mail["inbox/reviewer"].body["team"] == "ops"


async def test_an_agent_of_two_teams_reaches_the_members_of_both(tmp_path: Path) -> None:
    rules = [
        ScriptRule(agent="lead", reply="I ask both.", hand_off={"coder": "a", "reviewer": "b"}),
        ScriptRule(agent="coder", reply="coder", hand_off={"reviewer": "psst"}),
        ScriptRule(agent="reviewer", reply="reviewer"),
    ]
    async with staffed(tmp_path, *rules, teams=TWO_TEAMS) as desk:
        await desk.write("@dev go")
        await desk.replies(3)
        notes = [m for m in await desk.quiet() if m.message_type == "office.note"]
        reached = {(m.from_agent, m.agent, m.body["team"]) for m in notes}
        assert reached == {("lead", "coder", "dev"), ("lead", "reviewer", "ops")}, "strangers are not reached"


async def test_a_first_turn_begins_a_new_session(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: "ok")
    agents = {name: {"provider": "puppet"} for name in AGENTS}
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=agents) as desk:
        for name in AGENTS:
            await desk.write(f"@{name} hello")
        await desk.replies(3)
    assert [request.session_id for request in puppet.asked] == [None, None, None]


async def test_an_agent_works_where_its_settings_say_and_sends_from_there(tmp_path: Path) -> None:
    puppet = Puppet(lambda request: "[send_file: here.txt]")
    own = tmp_path / "elsewhere"
    own.mkdir()
    (own / "here.txt").write_text("it is here")
    agents = {"coder": {"provider": "puppet", "working_directory": str(own)}}
    async with staffed(tmp_path, puppets={"puppet": puppet}, agents=agents, teams={}) as desk:
        await desk.write("@coder send it")
        [reply] = await desk.replies(1)
        assert content(reply.files[0]) == "it is here"
    assert [request.workspace for request in puppet.asked] == [own]


@pytest.mark.parametrize("sandbox", ["auto", "off"])
async def test_a_stop_ends_all_that_a_turn_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    """With a program that hangs, ignores SIGTERM and has left children of its own behind."""
    parent = {**programs(tmp_path), "FAKE": "silent ignore-term leave-setsid leave-stubborn"}
    real = Cast(ProviderSettings(pass_variables=("FAKE", "FAKE_STATE")), {})
    real._parent = parent
    state = tmp_path / "state"
    state.mkdir(exist_ok=True)
    options: dict[str, Any] = {
        "agents": {"coder": {"provider": "anthropic"}},
        "teams": {},
        "security": {
            "sandbox": sandbox,
            "readable": [str(Path(__file__).parents[1])],
            "writable": [str(state)],
        },
    }
    async with staffed(tmp_path, puppets={"anthropic": real.get("anthropic")}, **options) as desk:
        await desk.write("@coder hello")
        left = tmp_path / "state" / "left"
        await until(lambda: left.exists() and len(content(left).split()) >= 2)
        await desk.office.stop(grace=0.1)
        [mail] = (await desk.room.messages(queue="office/inbox/coder")).messages
        assert (mail.state, mail.attempts) == (State.PENDING, 0)
    assert orphans(tmp_path) == []
