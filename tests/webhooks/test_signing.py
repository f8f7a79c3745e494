"""A receiver can tell a request of ours from a forged, changed or old one."""

from postroom.webhooks.signing import BOTH, headers, verify

SECRET, BODY = "a-secret-of-sixteen", b'{"a":1}'


def test_a_fresh_request_is_known() -> None:
    assert verify(SECRET, BODY, headers(SECRET, BODY, 1000)[BOTH], 1100)


def test_others_are_not() -> None:
    signature = headers(SECRET, BODY, 1000)[BOTH]
    assert not verify("another-secret-here", BODY, signature, 1000)
    assert not verify(SECRET, b'{"a":2}', signature, 1000)
    assert not verify(SECRET, BODY, signature, 1301), "too old"
    assert not verify(SECRET, BODY, signature.replace("t=1000", "t=1200"), 1200), "the time is signed too"
    for nonsense in ("nonsense", "t=1000,v1=\xe4", "t=\u0661,v1=x", "t=" + "9" * 5000 + ",v1=x", ""):
        assert not verify(SECRET, BODY, nonsense, 1000)
