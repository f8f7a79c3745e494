"""Tags are read as people and agents mean them, in linear time, and no character is ever lost."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.office.tags import (
    AttachedFile,
    Mention,
    Part,
    RoomPost,
    SendFile,
    TaskRef,
    Text,
    Unclosed,
    compose,
    files_to_send,
    from_room,
    from_teammate,
    parse,
    shared_context,
    with_attachments,
    without_files_to_send,
)

PIECES = (
    *(
        "[",
        "]",
        "[@",
        "[#",
        ":",
        ",",
        "[@a:",
        "[@B, c :",
        "[#dev:",
        "[@:",
        "[@ ,:",
        "[send_file:",
        "[file:",
        "[task:",
    ),
    *(" ", "\n", "a", "coder", "arr[0]", "/x.png", "12", "]]", "[[", "@a ", "—", "😀", "\ud800", "\0"),
)
texts = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=80)


def sources(parts: list[Part]) -> str:
    return "".join(part.source for part in parts)


def mentions(text: str) -> list[tuple[tuple[str, ...], str]]:
    return [(part.ids, part.text) for part in parse(text) if isinstance(part, Mention)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[@coder: fix arr[0]]", [(("coder",), "fix arr[0]")]),
        ("[@Coder, reviewer : hi ]", [(("coder", "reviewer"), "hi")]),
        ("[@a: outer [@b: inner] tail]", [(("a",), "outer [@b: inner] tail")]),
        ("[@coder] x [@rev: y]", [(("rev",), "y")]),
        ("[@coder:]", [(("coder",), "")]),
        ("[@coder: open [ x", []),
        ("[@: x]", []),
        ("[ @a: x]", []),
        ("[@coder]", []),
    ],
)
def test_the_examples_of_the_contract_hold(text: str, found: list[tuple[tuple[str, ...], str]]) -> None:
    assert mentions(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "[@a: open [ x [@b: hi]",
        "[@a: [@b: hi]",
        "[@a: arr[0 is bad] then [@b: hi]",
        "[#dev: x [@b: hi]",
        "[ [@b: hi]",
    ],
)
def test_a_tag_that_never_closes_does_not_hide_the_tags_after_it(text: str) -> None:
    assert mentions(text) == [(("b",), "hi")]


def test_the_opening_of_an_unclosed_tag_is_told_apart_from_text() -> None:
    assert parse("x [@a: y") == [Text("x "), Unclosed("[@a:"), Text(" y")]


def test_each_kind_of_tag_is_read_in_order() -> None:
    text = "Hi [@A,b: do [x]] and [#Dev: hello] [send_file: /w/a[1].png][file: /f/b.txt] on [task:7]."
    assert parse(text) == [
        Text("Hi "),
        Mention("[@A,b: do [x]]", ("a", "b"), "do [x]"),
        Text(" and "),
        RoomPost("[#Dev: hello]", "dev", "hello"),
        Text(" "),
        SendFile("[send_file: /w/a[1].png]", "/w/a[1].png"),
        AttachedFile("[file: /f/b.txt]", "/f/b.txt"),
        Text(" on "),
        TaskRef("[task:7]", "7"),
        Text("."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "[tool: Bash]",
        "[@ , : x]",
        "[send_file: ]",
        "[file:]",
        "[task:]",
        "[task: a b]",
        "[task:a[0]]",
    ],
)
def test_what_is_no_tag_is_text(text: str) -> None:
    assert parse(text) == ([Text(text)] if text else [])


def test_a_tag_of_another_kind_inside_a_tag_is_text_too() -> None:
    assert parse("[#dev: ask [@coder: x]]") == [RoomPost("[#dev: ask [@coder: x]]", "dev", "ask [@coder: x]")]


def test_shared_context_is_what_stands_outside_the_mentions() -> None:
    parts = parse("Sprint ends Friday. [@a: one]\n[#dev: all] [send_file: x] [@b: two] Bye. [@c: open")
    assert shared_context(parts) == "Sprint ends Friday. \n[#dev: all] [send_file: x]  Bye. [@c: open"
    assert shared_context(parse("[@a: one]\n[@b: two]")) == ""


def test_the_texts_agents_receive_are_literal() -> None:
    assert compose("All of you.", "List PRs.") == "All of you.\n\n------\n\nDirected to you:\nList PRs."
    assert compose("", "List PRs.") == "List PRs."
    assert from_teammate("lead", "Go.") == "[Message from teammate @lead]:\nGo."
    assert from_room("dev", "lead", "Go.") == "[Chat room #dev — @lead]:\nGo."


def test_attachments_follow_the_text_after_a_blank_line() -> None:
    assert with_attachments("Look.", ["/f/a", "/f/b"]) == "Look.\n\n[file: /f/a]\n[file: /f/b]"
    assert with_attachments("", ["/f/a"]) == "[file: /f/a]"
    assert with_attachments("Look.", []) == "Look."


def test_files_to_send_are_found_anywhere_and_taken_out() -> None:
    text = "Done. [send_file: a.png] [@lead: see [send_file: b[1].png]] [send_file: open"
    assert [file.path for file in files_to_send(text)] == ["a.png", "b[1].png"]
    assert without_files_to_send(text) == "Done.  [@lead: see ] [send_file: open"
    assert without_files_to_send("nothing [@a: b]") == "nothing [@a: b]"


@settings(deadline=None, max_examples=500)
@given(texts)
def test_no_character_is_lost(text: str) -> None:
    parts = parse(text)
    assert sources(parts) == text
    assert all(part.source for part in parts)


@settings(deadline=None, max_examples=500)
@given(texts)
def test_a_tag_read_alone_is_the_same_tag(text: str) -> None:
    for part in parse(text):
        if not isinstance(part, Text | Unclosed):
            assert parse(part.source) == [part]


@settings(deadline=None, max_examples=500)
@given(texts)
def test_files_to_send_and_the_rest_make_up_the_text(text: str) -> None:
    rest = text
    for file in files_to_send(text):
        before, found, rest_after = rest.partition(file.source)
        assert found
        rest = before + rest_after
    assert without_files_to_send(text) == rest.strip()


def as_the_contract_scans(text: str) -> list[tuple[str, str]] | None:
    """The scan of the contract, word for word; None where it meets an unclosed tag and stops."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        if not text.startswith("[@", at):
            at += 1
            continue
        colon = text.find(":", at + 2)
        name = text[at + 2 : colon]
        if colon < 0 or "[" in name or "]" in name or not name.strip():
            at += 1
            continue
        depth, end = 1, colon + 1
        while end < len(text) and depth:
            depth += {"[": 1, "]": -1}.get(text[end], 0)
            end += 1
        if depth:
            return None
        found.append((name.strip(), text[colon + 1 : end - 1].strip()))
        at = end
    return found


@settings(deadline=None, max_examples=1000)
@given(
    st.lists(st.sampled_from(["[", "]", "[@", ":", "a", "b", ",", " ", "[@a:", "[@b :"]), max_size=30).map(
        "".join
    )
)
def test_closed_tags_are_found_as_the_contract_finds_them(text: str) -> None:
    expected = as_the_contract_scans(text)
    # Ids of commas and blanks only are the one other difference: nobody is meant, so it is text.
    if expected is not None and all(name.replace(",", "").strip() for name, _ in expected):
        got = [
            (part.source[2:].partition(":")[0].strip(), part.text)
            for part in parse(text)
            if isinstance(part, Mention)
        ]
        assert got == expected


MEGABYTE = 1_000_000
NASTY = (
    "[",
    "]",
    "[@",
    "[@:",
    "[@a:",
    "[#a:",
    "[@,",
    "[task:",
    "[file:",
    "[send_file: ",
    "[]",
    "[@a: x]",
    "[@a: [",
    ":",
)


@pytest.mark.parametrize("pattern", NASTY)
@pytest.mark.parametrize("closing", ["", "]", "x]"])
def test_a_megabyte_of_brackets_is_read_in_linear_time(pattern: str, closing: str) -> None:
    half = MEGABYTE // 2 if closing else MEGABYTE
    text = pattern * (half // len(pattern)) + closing * (half // len(closing) if closing else 0)
    began = time.process_time()
    parts = parse(text)
    files_to_send(text)
    # A second or less on a slow machine; quadratic time would be hours.
    assert time.process_time() - began < 20
    assert sources(parts) == text


def fuzz(count: int, seed: int) -> None:
    rng = random.Random(seed)
    began = time.process_time()
    for _ in range(count):
        text = "".join(rng.choices(PIECES, k=rng.randrange(30)))
        assert sources(parse(text)) == text
    assert time.process_time() - began < 60 + count / 2_000


def test_twenty_thousand_random_texts_lose_no_character() -> None:
    fuzz(20_000, seed=1)


@pytest.mark.slow
def test_a_million_random_texts_lose_no_character() -> None:
    fuzz(1_000_000, seed=2)
