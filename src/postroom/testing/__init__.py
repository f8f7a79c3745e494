"""For people who write channels: fake platforms that speak the real protocols, under a clock the test holds.

    async with FakeTelegram() as telegram:
        bot = Bot(telegram.token, session=AiohttpSession(api=TelegramAPIServer.from_base(telegram.url)))
        await telegram.write(Person("1001", "Ann"), "hello")
        …
        telegram.transcript.exactly_one("hello, Ann")

Needs `pip install 'postroom[testing]'`. Nothing of Postroom itself uses it.
"""
