"""News of commits: the first goes at once, those behind it together, and none is left behind at the end."""

import threading
from collections.abc import Mapping

import pytest

from postroom.stores.sql import gathered_news
from postroom.stores.sql.gathered_news import GatheredNews
from tests.stores.servers.conftest import until


class Post:
    """Where news go; it can be held while it sends."""

    def __init__(self) -> None:
        self.sent: list[dict[int, int]] = []
        self.may_send = threading.Event()
        self.may_send.set()
        self.is_sending = threading.Event()

    def send(self, woken: Mapping[int, int]) -> None:
        self.is_sending.set()
        self.may_send.wait(60)
        self.sent.append(dict(woken))


@pytest.fixture
def post() -> Post:
    return Post()


def test_news_that_come_while_others_are_sent_go_together(post: Post) -> None:
    news = GatheredNews(post.send, "test")
    news.start()
    post.may_send.clear()
    news.tell({1: 1})
    assert post.is_sending.wait(60)
    for number in (1, 2, 2):
        news.tell({number: 1})
    post.may_send.set()
    until(lambda: len(post.sent) == 2)
    assert post.sent == [{1: 1}, {1: 1, 2: 2}]
    news.close()
    assert len(post.sent) == 2


def test_what_was_told_before_the_end_is_sent(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered_news, "GAP_S", 600)
    monkeypatch.setattr(gathered_news, "QUIET_GAP_S", 600)
    news = GatheredNews(post.send, "test")
    news.start()
    news.tell({})
    until(lambda: post.sent == [{}])
    news.tell({7: 3})
    news.close()
    assert post.sent == [{}, {7: 3}]


def test_what_makes_nothing_claimable_waits_longer_than_what_does(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathered_news, "QUIET_GAP_S", 600)
    news = GatheredNews(post.send, "test")
    news.start()
    news.tell({})
    until(lambda: post.sent == [{}])
    news.tell({})
    news.tell({7: 1})
    until(lambda: post.sent == [{}, {7: 1}])
    news.close()


def test_of_too_many_lines_some_are_left_to_find_out_by_themselves(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathered_news, "MOST_LINES", 1)
    news = GatheredNews(post.send, "test")
    news.tell({1: 1})
    news.tell({2: 1})
    news.start()
    news.close()
    assert post.sent == [{1: 1}]


def test_what_never_began_ends_at_once(post: Post) -> None:
    GatheredNews(post.send, "test").close()
    assert post.sent == []
