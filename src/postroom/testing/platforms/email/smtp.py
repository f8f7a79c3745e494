"""SMTP as a provider takes mail for delivery: signed in, recipient by recipient, accepted or not."""

import asyncio
from collections.abc import Callable

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from postroom.testing.platforms.base import LOOPBACK
from postroom.testing.platforms.faults import (
    CallHeld,
    ConnectionDropped,
    FaultPlan,
    RateLimited,
    ServerFailed,
)

SIZE_LIMIT = 25 * 1024 * 1024


class SmtpServer:
    """Calls are named `SMTP DATA` and `SMTP RCPT`."""

    def __init__(self, faults: FaultPlan, user: str, password: str, take: Callable[[Envelope], None]) -> None:
        self._faults = faults
        self._user = user
        self._password = password
        self._take = take
        self._server: asyncio.Server | None = None
        self._sessions: set[SMTP] = set()
        # Addresses that do not exist: refused for good.
        self.unknown: set[str] = set()

    async def open(self, port: int) -> int:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._start, LOOPBACK, port)
        return self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for session in self._sessions:
            _abort(session)
        self._sessions.clear()
        await server.wait_closed()

    def _start(self) -> SMTP:
        smtp = SMTP(
            self,
            hostname="fake.mail",
            ident="fake SMTP",
            data_size_limit=SIZE_LIMIT,
            authenticator=self._authenticate,
            auth_require_tls=False,
            enable_SMTPUTF8=True,
            loop=asyncio.get_running_loop(),
        )
        self._sessions.add(smtp)
        return smtp

    def _authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        known = (data.login, data.password) == (self._user.encode(), self._password.encode())
        return AuthResult(success=known, handled=False)

    # aiosmtpd's own demand for a login warns of missing encryption, which loopback does not need.
    async def handle_MAIL(  # noqa: N802 - aiosmtpd calls it by this name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if not session.authenticated:
            return "530 5.7.0 Authentication required"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        fault = self._faults.take("SMTP RCPT", RateLimited, ServerFailed)
        if fault is not None:
            return "450 4.7.1 Too many messages, try again later"
        if address in self.unknown:
            return "550 5.1.1 The e-mail account does not exist"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        fault = self._faults.take("SMTP DATA", RateLimited, ServerFailed, ConnectionDropped, CallHeld)
        match fault:
            case RateLimited():
                return "450 4.7.1 Too many messages, try again later"
            case ServerFailed():
                return "451 4.3.0 Temporary server error, try again later"
            case ConnectionDropped(when="before"):
                return self._hang_up(server)
            case CallHeld(when="before"):
                await fault.stop_here()
        self._take(envelope)
        if isinstance(fault, ConnectionDropped):
            return self._hang_up(server)
        if isinstance(fault, CallHeld) and fault.when == "after":
            await fault.stop_here()
        return "250 2.0.0 OK"

    def _hang_up(self, server: SMTP) -> str:
        _abort(server)
        return "421 4.3.0 bye"


def _abort(session: SMTP) -> None:
    if isinstance(session.transport, asyncio.Transport):
        session.transport.abort()
