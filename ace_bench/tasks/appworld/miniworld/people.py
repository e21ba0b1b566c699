"""Who lives in the mini-world: three supervisors and the people in their contact books."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

NOW = dt.datetime(2023, 5, 18, 12)
"""The moment of most tasks; all base data is older."""

LATER = dt.datetime(2023, 6, 12, 9, 30)
"""The moment of tasks that must not be solvable with dates learnt from earlier ones."""

OPENED = dt.datetime(2023, 2, 1, 9)
"""When every account was opened."""

APPS = ("amazon", "file_system", "gmail", "phone", "simple_note", "splitwise", "spotify", "todoist", "venmo")
"""Apps in which people have accounts."""


@dataclass(frozen=True, kw_only=True)
class Person:
    """A person; ``id`` is the key of the account in every app."""

    id: int
    first: str
    last: str

    @property
    def email(self) -> str:
        """Address, which is also the user name everywhere but in the phone app."""
        return f"{self.first}.{self.last}@example.com".lower()

    @property
    def phone(self) -> str:
        """Number, the user name in the phone app."""
        return f"55501{self.id:05d}"

    @property
    def home(self) -> str:
        """Home folder in the file system app, with a slash at its end."""
        return f"/home/{self.first.lower()}/"

    @property
    def profile(self) -> Mapping[str, str]:
        """Name, address and number by the engine's fields."""
        return {"first_name": self.first, "last_name": self.last, "email": self.email, "phone_number": self.phone}

    def password(self, app: str) -> str:
        """Password of an account."""
        return f"{self.first.lower()}-{app}-{self.id * 37 + len(app)}"


_NAMES = """
Edda Thornbury, Joss Penhallow, Nilufer Castane, Bram Holloway, Celeste Varga, Dmitri Ashworth, Fenna Okoye,
Gideon Marsh, Hana Lindqvist, Ivo Castellan, Jorun Blackwood, Kira Danforth, Lucian Peverell, Mabel Quist,
Nestor Rourke, Odile Farrow, Pascal Wendt
"""

PEOPLE = tuple(
    Person(id=number, first=name.split()[0], last=name.split()[1])
    for number, name in enumerate(_NAMES.replace("\n", " ").split(","), start=1)
)

SUPERVISORS = PEOPLE[:3]
"""Task ``n`` of every scenario belongs to supervisor ``n - 1``."""

_OTHERS = PEOPLE[3:]

_SIZES = (
    {"roommate": 3, "sibling": 2, "coworker": 6, "friend": 3},
    {"roommate": 2, "sibling": 3, "coworker": 7, "friend": 2},
    {"roommate": 4, "sibling": 2, "coworker": 6, "friend": 2},
)
"""The number of contacts per relationship; more coworkers than the default page of five."""


def circle(supervisor: int, relationship: str) -> tuple[Person, ...]:
    """Return the people in one relationship with a supervisor (by index)."""
    return tuple(person for person, relation in contacts(supervisor).items() if relation == relationship)


def contacts(supervisor: int) -> Mapping[Person, str]:
    """Return a supervisor's contact book: everybody but the supervisors, each in one relationship."""
    turned = _OTHERS[5 * supervisor :] + _OTHERS[: 5 * supervisor]
    relations = [relation for relation, size in _SIZES[supervisor].items() for _ in range(size)]
    return dict(zip(turned, relations, strict=True))


def venmo_friends(supervisor: int) -> tuple[Person, ...]:
    """Return a supervisor's friends on Venmo: the first of each relationship, and two coworkers more."""
    firsts = tuple(circle(supervisor, relation)[0] for relation in ("roommate", "sibling", "coworker", "friend"))
    return firsts + circle(supervisor, "coworker")[3:5]
