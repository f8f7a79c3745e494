"""Everything the memory store keeps, with the one journal that can take it back."""

from postroom.stores.memory.accounts import Accounts
from postroom.stores.memory.chain import Chain
from postroom.stores.memory.documents import Documents
from postroom.stores.memory.filing import Filing
from postroom.stores.memory.journal import Journal
from postroom.stores.memory.messages import Messages
from postroom.stores.memory.notes import Notes
from postroom.stores.memory.places import Places


class Tables:
    def __init__(self) -> None:
        self.journal = Journal()
        self.places = Places(self.journal)
        self.messages = Messages(self.journal)
        self.notes = Notes(self.journal)
        self.documents = Documents(self.journal)
        self.filing = Filing(self.journal)
        self.accounts = Accounts(self.journal)
        self.chain = Chain(self.journal)
