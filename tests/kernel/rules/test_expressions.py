"""Expressions are bounded before they run, and nothing they meet is an error."""

import pytest

from postroom.errors import InvalidField
from postroom.kernel import expressions
from postroom.kernel.expressions import TooMuch, check, compiled

FACTS = {
    "labels": {"tier": "premium", "n": 3},
    "body": {"total": 120.5, "items": [1, 2, 3], "text": "Refund (now)"},
    "priority_score": 500,
    "message_type": "order.new",
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('labels.tier == "premium" && body.total > 100', True),
        ("labels.n == 3.0 && labels.n > 2.5", True),
        ("has(body.missing) && body.missing > 3", False),
        ("body.missing > 3", False),
        ("labels.tier > 3", False),
        ("body.items.all(i, i < 10)", True),
        ('body.items.exists(i, i == 2) && "tier" in labels', True),
        ('body.text.matches("(?i)refund")', True),
        ('message_type.startsWith("order.")', True),
        ("1 / 0 == 1", False),
        ("body", False),
        ("result.ok", False),
    ],
)
def test_an_expression_holds_or_does_not(text: str, holds: bool) -> None:
    check(text)
    assert compiled(text).holds(FACTS) is holds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1 to 2000"),
        ("x" * 2001, "1 to 2000"),
        ("labels.tier ==", "is not CEL"),
        ("secret == 1", "asks for 'secret'"),
        ("body.a.all(x, body.b.all(y, x == y))", "loop inside a loop"),
        ("body.a.filter(x, x > 1).all(y, body.c.exists(z, z == y))", "loop inside a loop"),
        ("body.// a comment\nall(x, body.// more\nall(y, x == y))", "loop inside a loop"),
        (r'r"\" != "a" && body.all(x, body.all(y, x == y)) && "b" != "c"', "loop inside a loop"),
        ('''"""a"b""" != "" && body.all(x, body.all(y, x == y)) && """c"d""" != ""''', "loop inside a loop"),
        ("body.map(x, body).size() > 0", "has a map"),
        ('labels.tier == "premium', "has no end"),
        ('labels.tier.lowerAscii() == "premium"', "calls 'lowerAscii'"),
        ('body.a.all(x, x.matches("a"))', "regular expression inside a loop"),
        ("(" * 500 + "1" + ")" * 500, "is not CEL"),
    ],
)
def test_what_could_never_be_right_or_take_too_long_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidField, match=problem.replace("(", r"\(")):
        check(text)


def test_two_loops_beside_each_other_are_allowed() -> None:
    check("body.a.all(x, x > 1) && body.b.exists(y, y < 1)")
    check('labels.text == ".all(x, y.all(z" || body.a.all(x, x == 1)')


def test_a_loop_does_not_look_at_a_large_message() -> None:
    text = "body.items.all(i, i >= 0)"
    small, large = {"body": {"items": [1]}}, {"body": {"items": list(range(20_000))}}
    assert compiled(text).holds(small)
    with pytest.raises(TooMuch):
        compiled(text).holds(large)


def test_the_more_a_loop_does_the_less_it_may_look_at() -> None:
    items = {"body": {"items": list(range(2000))}}
    assert compiled("body.items.all(i, i >= 0)").holds(items)
    with pytest.raises(TooMuch):
        compiled("body.items.filter(i, i >= 0).size() > 0").holds(items)
    many = " && ".join(["body.items.all(i, i in body.items)"] * 8)
    with pytest.raises(TooMuch):
        compiled(many).holds(items)


def test_times_and_texts_are_known() -> None:
    check(r'timestamp(body.at).getFullYear() == 2026 && labels.t.startsWith(r"\d") && size(body.items) > 1')


def test_regular_expressions_cannot_run_away() -> None:
    assert not expressions.matches("a" * 50_000 + "b", "^(a+)+$")
    with pytest.raises(InvalidField, match="is not a regular expression"):
        expressions.check_pattern("(", "value")
