"""A message reaches those it is meant for, with the text meant for them, and nobody else."""

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from postroom.office.intake.routing import (
    AgentRef,
    NoAgents,
    OfficeDirectory,
    RoutedMessage,
    SkipReason,
    TeamRef,
    Via,
    pass_on,
    post,
    route,
    stick,
)
from postroom.settings import parse

OFFICE = OfficeDirectory(
    [
        AgentRef("tinyagi", "TinyAGI Agent"),
        AgentRef("lead", "Lena"),
        AgentRef("coder", "Code Bot"),
        AgentRef("reviewer", "Rita"),
        AgentRef("tester", "Tester"),
        AgentRef("writer", "dev"),
    ],
    [
        TeamRef("dev", "Dev Team", "lead", ("lead", "coder", "reviewer")),
        TeamRef("qa", "Quality", "lead", ("lead", "tester", "coder")),
        TeamRef("ghosts", "Ghosts", "nobody", ("nobody",)),
        TeamRef("orphans", "Orphans", "nobody", ("tester", "writer")),
    ],
    default="tinyagi",
)


def only(text: str, **options: str) -> RoutedMessage:
    [letter] = route(text, OFFICE, **options).messages
    return letter


@pytest.mark.parametrize(
    ("text", "agent", "team", "rest"),
    [
        ("@coder fix it", "coder", None, "fix it"),
        ("@CODER   spaced", "coder", None, "spaced"),
        ("@coder\nline one\nline two", "coder", None, "line one\nline two"),
        ("@coder ", "coder", None, ""),
        ("@dev hello", "lead", "dev", "hello"),
        ("@Dev Team hello", "lead", "dev", "Team hello"),
        ("@qa hello", "lead", "qa", "hello"),
        ("@rita look", "reviewer", None, "look"),
        ("@Quality look", "lead", "qa", "look"),
        ("@coder, please", "coder", None, "please"),
        ("@coder: please", "coder", None, "please"),
        ("@orphans hello", "tester", "orphans", "hello"),
    ],
)
def test_a_prefix_names_the_addressee_and_is_cleaned_off(
    text: str, agent: str, team: str | None, rest: str
) -> None:
    assert only(text) == RoutedMessage(agent, team, rest, Via.PREFIX)


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "@code bot hi",
        "@coder",
        " @coder hi",
        "mail me @coder now",
        "@ghost hi",
        "@ghosts hi",
        "@",
        "",
    ],
)
def test_without_a_known_prefix_the_default_agent_gets_the_whole_text(text: str) -> None:
    assert only(text) == RoutedMessage("tinyagi", None, text, Via.DEFAULT)


def test_a_leader_of_two_teams_is_told_which_team_was_addressed() -> None:
    assert only("@dev go").team == "dev"
    assert only("@qa go").team == "qa"
    assert only("@lead go").team is None


def test_a_given_agent_gets_the_text_as_it_is() -> None:
    assert only("hello [@coder: x]", agent="Lead") == RoutedMessage(
        "lead", None, "hello [@coder: x]", Via.GIVEN
    )
    assert only("@coder hi", agent="lead").text == "@coder hi"
    assert only("hi", agent="qa") == RoutedMessage("lead", "qa", "hi", Via.GIVEN)


def test_a_prefix_that_repeats_the_given_agent_is_cleaned_off() -> None:
    assert only("@coder hi", agent="coder") == RoutedMessage("coder", None, "hi", Via.GIVEN)
    assert only("@qa hi", agent="lead") == RoutedMessage("lead", "qa", "hi", Via.GIVEN)


def test_a_given_agent_that_does_not_exist_is_passed_over() -> None:
    assert only("@coder hi", agent="ghost") == RoutedMessage("coder", None, "hi", Via.PREFIX)
    assert only("hi", agent="ghost") == RoutedMessage("tinyagi", None, "hi", Via.DEFAULT)


SPRINT = """Sprint ends Friday, 3 open bugs.
Reply with: (1) status (2) blockers (3) next step.
[@coder: Also list any PRs you have open.]
[@reviewer: Also flag any PRs waiting on you.]
[@tester: Also report test coverage for the auth module.]"""


def test_a_message_with_several_tags_fans_out_with_the_shared_context() -> None:
    shared = "Sprint ends Friday, 3 open bugs.\nReply with: (1) status (2) blockers (3) next step."
    own = {
        "coder": "Also list any PRs you have open.",
        "reviewer": "Also flag any PRs waiting on you.",
        "tester": "Also report test coverage for the auth module.",
    }
    assert route(SPRINT, OFFICE).messages == tuple(
        RoutedMessage(agent, None, f"{shared}\n\n------\n\nDirected to you:\n{text}", Via.TAG)
        for agent, text in own.items()
    )


def test_tags_win_over_the_default_of_the_chat_but_not_over_a_prefix() -> None:
    assert [letter.agent for letter in route(SPRINT, OFFICE, sticky="writer").messages] == [
        "coder",
        "reviewer",
        "tester",
    ]
    assert only(f"@lead {SPRINT}") == RoutedMessage("lead", None, SPRINT, Via.PREFIX)


def test_a_tag_with_several_ids_goes_to_each_and_a_team_to_its_leader() -> None:
    letters = route("[@Coder, qa,RITA: go]", OFFICE).messages
    assert [(letter.agent, letter.team, letter.text) for letter in letters] == [
        ("coder", None, "go"),
        ("lead", "qa", "go"),
        ("reviewer", None, "go"),
    ]


def test_several_tags_for_one_agent_make_one_letter() -> None:
    assert only("[@coder: one] [@coder: two] [@coder,coder: one]").text == "one\ntwo"
    assert only("[@qa: one] [@lead: two]").team == "qa"
    assert only("[@lead: one] [@qa: two]") == RoutedMessage("lead", "qa", "one\ntwo", Via.TAG)


def test_a_tag_for_nobody_stays_in_the_text_and_is_reported() -> None:
    routed = route("Hi [@ghost: boo] [@coder,spook: go]", OFFICE)
    assert [letter.text for letter in routed.messages] == [
        "Hi [@ghost: boo]\n\n------\n\nDirected to you:\ngo"
    ]
    assert [(skip.tag, skip.why) for skip in routed.skipped] == [
        ("ghost", SkipReason.UNKNOWN),
        ("spook", SkipReason.UNKNOWN),
    ]


def test_with_tags_for_nobody_only_the_default_agent_gets_the_whole_text() -> None:
    routed = route("Meet [@ 5pm: lobby]", OFFICE)
    assert routed.messages == (RoutedMessage("tinyagi", None, "Meet [@ 5pm: lobby]", Via.DEFAULT),)
    assert [skip.tag for skip in routed.skipped] == ["5pm"]


def test_a_tag_without_text_still_brings_the_shared_context() -> None:
    assert only("Read this. [@coder:]") == RoutedMessage("coder", None, "Read this.", Via.TAG)
    assert only("[@coder:]").agent == "tinyagi"


def test_files_stay_with_every_part() -> None:
    letters = route("[@coder: a] [@tester: b]\n\n[file: /f/x.png]", OFFICE).messages
    assert all(letter.text.startswith("[file: /f/x.png]\n\n------") for letter in letters)


def test_the_default_of_a_chat_is_kept_told_once_and_cleared() -> None:
    defaults: dict[str, str] = {}
    first = stick("@Coder fix it", OFFICE, defaults, "42")
    assert first.notice == (
        "Switched to agent @coder (Code Bot). Future messages will be routed here automatically. "
        "Send @default to clear."
    )
    assert (first.text, defaults) == ("@Coder fix it", {"42": "coder"})
    assert stick("@coder again", OFFICE, defaults, "42").notice is None
    plain = stick("and this", OFFICE, defaults, "42")
    assert (plain.text, plain.sticky, plain.notice) == ("and this", "coder", None)
    assert route(plain.text or "", OFFICE, sticky=plain.sticky).messages == (
        RoutedMessage("coder", None, "and this", Via.STICKY),
    )
    assert stick("other chat", OFFICE, defaults, "7").sticky is None
    cleared = stick("@Default", OFFICE, defaults, "42")
    assert (cleared.text, cleared.notice) == (
        None,
        "Cleared default agent. Messages will use default routing.",
    )
    assert stick("@default", OFFICE, defaults, "42").notice == "No default agent was set."
    assert defaults == {}


def test_a_team_can_be_the_default_of_a_chat_and_keeps_its_context() -> None:
    defaults: dict[str, str] = {}
    stuck = stick("@qa", OFFICE, defaults, "42")
    assert stuck.text is None
    assert stuck.notice == (
        "Switched to team @qa (Quality). Future messages will be routed here automatically. "
        "Send @default to clear."
    )
    assert only("status?", sticky="qa") == RoutedMessage("lead", "qa", "status?", Via.STICKY)


def test_an_unknown_tag_changes_no_default() -> None:
    defaults = {"42": "coder"}
    stuck = stick("@ghost hi", OFFICE, defaults, "42")
    assert (stuck.text, stuck.sticky, stuck.notice, defaults) == ("@ghost hi", None, None, {"42": "coder"})


def test_text_after_default_is_not_lost() -> None:
    defaults = {"42": "coder"}
    stuck = stick("@default what now?", OFFICE, defaults, "42")
    assert (stuck.text, stuck.sticky, defaults) == ("what now?", None, {})


def test_a_default_that_is_gone_is_told_once_and_forgotten() -> None:
    defaults = {"42": "gone"}
    stuck = stick("hi", OFFICE, defaults, "42")
    assert stuck.notice == "@gone is not here any more. Messages will use default routing."
    assert (stuck.text, stuck.sticky) == ("hi", None)
    assert stick("hi", OFFICE, defaults, "42").notice is None


def test_an_agent_reaches_the_members_of_all_its_teams() -> None:
    passed = pass_on("Plan. [@reviewer: look] [@tester: test]", "lead", OFFICE)
    assert [(handoff.agent, handoff.team) for handoff in passed.handoffs] == [
        ("reviewer", "dev"),
        ("tester", "qa"),
    ]
    assert passed.handoffs[0].body == "Plan.\n\n------\n\nDirected to you:\nlook"
    assert passed.handoffs[0].text == f"[Message from teammate @lead]:\n{passed.handoffs[0].body}"
    assert passed.skipped == ()


def test_the_team_in_context_is_preferred_where_two_agents_share_several() -> None:
    assert pass_on("[@coder: go]", "lead", OFFICE).handoffs[0].team == "dev"
    assert pass_on("[@coder: go]", "lead", OFFICE, team="qa").handoffs[0].team == "qa"
    assert pass_on("[@reviewer: go]", "lead", OFFICE, team="qa").handoffs[0].team == "dev"


def test_mentions_that_reach_nobody_are_reported_with_their_reason() -> None:
    answer = (
        "[@LEAD: me] [@ghost: x] [@writer: x] [@tester, tester: x] [@tester: y] [@dev: x] [@reviewer: open"
    )
    passed = pass_on(answer, "lead", OFFICE)
    assert [(handoff.agent, handoff.body.partition("you:\n")[2]) for handoff in passed.handoffs] == [
        ("tester", "x")
    ]
    assert [(skip.tag, skip.why) for skip in passed.skipped] == [
        ("lead", SkipReason.SELF),
        ("ghost", SkipReason.UNKNOWN),
        ("writer", SkipReason.STRANGER),
        ("tester", SkipReason.REPEATED),
        ("tester", SkipReason.REPEATED),
        ("dev", SkipReason.UNKNOWN),
        ("[@reviewer:", SkipReason.UNCLOSED),
    ]
    assert all(skip.reason.endswith(".") for skip in passed.skipped)


def test_an_agent_that_mentions_a_team_is_told_of_the_room() -> None:
    [skip] = pass_on("[@qa: all]", "lead", OFFICE).skipped
    assert skip.reason == 'There is no agent "qa". To reach the whole team, write [#qa: …].'


def test_an_empty_mention_is_sent_as_it_is() -> None:
    assert pass_on("[@coder:]", "lead", OFFICE).handoffs[0].text == "[Message from teammate @lead]:\n"


def test_an_agent_without_a_team_reaches_nobody() -> None:
    passed = pass_on("[@coder: hi]", "tinyagi", OFFICE)
    assert (passed.handoffs, passed.skipped[0].why) == ((), SkipReason.STRANGER)


def test_room_posts_go_to_every_other_member_of_a_team_of_the_poster() -> None:
    passed = pass_on("Done. [#Dev: green] [#qa: also [here]] [#qa:] [#ghosts: x] [#none: x]", "coder", OFFICE)
    assert [(p.team, p.members, p.body) for p in passed.posts] == [
        ("dev", ("lead", "reviewer"), "green"),
        ("qa", ("lead", "tester"), "also [here]"),
    ]
    assert passed.posts[0].text == "[Chat room #dev — @coder]:\ngreen"
    assert [(skip.tag, skip.why) for skip in passed.skipped] == [
        ("qa", SkipReason.EMPTY),
        ("ghosts", SkipReason.STRANGER),
        ("none", SkipReason.UNKNOWN),
    ]


def test_a_person_posts_to_everybody_in_the_team() -> None:
    assert post("hi", "dev", "user", OFFICE).members == ("lead", "coder", "reviewer")


def test_a_leader_not_listed_among_the_members_is_one_of_them() -> None:
    office = OfficeDirectory([AgentRef("a"), AgentRef("b")], [TeamRef("t", "", "a", ("b",))])
    assert office.members("t") == ("b", "a")
    assert [handoff.agent for handoff in pass_on("[@a: x]", "b", office).handoffs] == ["a"]


def test_ids_come_before_names_and_agents_before_teams() -> None:
    office = OfficeDirectory(
        [AgentRef("a", "t"), AgentRef("b", "a")],
        [TeamRef("t", "b", "a", ("a",)), TeamRef("u", "solo", "b", ("b",))],
    )
    assert (office.find("a"), office.find("t")) == (office.find("A"), office.find("T"))
    found = {word: office.find(word) for word in ("a", "t", "b", "solo")}
    assert {word: (to.agent, to.team) for word, to in found.items() if to} == {
        "a": ("a", None),
        "t": ("a", "t"),
        "b": ("b", None),
        "solo": ("b", "u"),
    }


def test_the_directory_of_the_settings_knows_the_default_agent() -> None:
    agents = {"Coder": {"name": "C"}, "default": {"name": "D"}}
    document = {
        "agents": agents,
        "teams": {"dev": {"name": "Dev", "agents": ["Coder"], "leader_agent": "CODER"}},
    }
    office = OfficeDirectory.of(parse(document))
    assert office.default == "default"
    assert route("@dev x", office).messages == (RoutedMessage("coder", "dev", "x", Via.PREFIX),)
    assert OfficeDirectory.of(parse({})).default == "tinyagi"
    assert OfficeDirectory.of(parse({"agents": {"z": {}, "a": {}}})).default == "z"
    assert OfficeDirectory.of(parse({"agents": {"z": {}, "a": {}}, "default_agent": "a"})).default == "a"


def test_an_office_without_agents_says_what_to_do() -> None:
    with pytest.raises(NoAgents, match="Add one first"):
        OfficeDirectory([])


WORDS = (
    "@",
    "@coder ",
    "@dev ",
    "[@coder: ",
    "[@dev,ghost: ",
    "[#qa: ",
    "]",
    "x",
    " ",
    "\n",
    "[",
    ":",
    "@default",
)


@hypothesis_settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(WORDS), max_size=20).map("".join))
def test_every_message_reaches_at_least_one_agent_and_each_only_once(text: str) -> None:
    letters = route(text, OFFICE).messages
    assert letters
    assert len({letter.agent for letter in letters}) == len(letters)
    assert all(letter.agent in OFFICE.agents for letter in letters)
    passed = pass_on(text, "lead", OFFICE)
    assert all(handoff.agent != "lead" for handoff in passed.handoffs)


def test_an_answer_of_a_megabyte_of_tags_is_passed_on_in_linear_time() -> None:
    passed = pass_on("[@coder: x] [@ghost: y] " * 40_000, "lead", OFFICE)
    assert (len(passed.handoffs), len(passed.skipped)) == (1, 79_999)
    assert len(route("".join(f"[@coder: {n}]" for n in range(60_000)), OFFICE).messages) == 1


@pytest.mark.parametrize("written", ["Zo\u00eb", "Zoe\u0308", "ZOE\u0308", "\uff3a\uff4f\u00eb"])
@pytest.mark.parametrize("known", ["Zo\u00eb", "Zoe\u0308"])
def test_a_name_is_the_same_however_its_letters_are_put_together(known: str, written: str) -> None:
    """Phones and computers write an \u00eb as one sign or as two."""
    directory = OfficeDirectory(
        [AgentRef("a", "Ann"), AgentRef("z", known)], [TeamRef("t", "T", "a", ("a", "z"))]
    )
    [letter] = route(f"@{written} hello", directory).messages
    assert (letter.agent, letter.text) == ("z", "hello")
    [handoff] = pass_on(f"[@{written}: look]", "a", directory).handoffs
    assert handoff.agent == "z"
