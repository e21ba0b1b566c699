"""Contact books and Venmo: payments, pending requests and friends of the supervisors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from .people import OPENED, SUPERVISORS, Person, circle, contacts, venmo_friends
from .tables import Row

_NOTES = ("Rent with my roommates", "Pizza", "Coworkers' lunch", "Concert", "Siblings' present", "Groceries", "Taxi")
"""Descriptions of payments; they do not reveal the relationship of the people."""

_LENGTHS = {3: 31, 4: 30, 5: 17}
"""Days of the months that the base data covers, all of 2023."""


@dataclass(frozen=True, kw_only=True)
class Payment:
    """Money that went from one person to another."""

    sender: Person
    receiver: Person
    amount: float
    note: str
    at: dt.datetime


@dataclass(frozen=True, kw_only=True)
class Request(Payment):
    """A payment request to a supervisor; ``approved`` ones are already paid."""

    approved: bool


def payments(supervisor: int, month: int) -> Sequence[Payment]:
    """Return a supervisor's payments of a month: one sent and one received for each contact, twice for the closest.

    There are payments on the first and the last day of a month, so that a window that misses a day gives a wrong sum.
    """
    me, sent = SUPERVISORS[supervisor], []
    for index, (person, relation) in enumerate(contacts(supervisor).items()):
        for turn in range(2 if relation in ("roommate", "sibling") else 1):
            day = 1 + (index * 3 + turn * 8) % _LENGTHS[month]
            sent.append(_payment(me, person, month + 7.5 * turn + index, dt.datetime(2023, month, day, 10 + turn)))
        last = dt.datetime(2023, month, _LENGTHS[month] - index % 9, 20)
        sent.append(_payment(person, me, 3 * month + 1.25 * index, last))
    return sent


def later_payments(supervisor: int, relationship: str) -> Sequence[Payment]:
    """Return payments between the base data's end and June 12 with one circle of contacts, and decoys to a friend."""
    me, sent = SUPERVISORS[supervisor], []
    for index, person in enumerate((*circle(supervisor, relationship), *circle(supervisor, "friend")[:1])):
        for month, day in ((5, 31 - index), (6, 1 + index)):
            sent.append(_payment(person, me, 4 + month * 2.5 + index, dt.datetime(2023, month, day, 18)))
            sent.append(_payment(me, person, 9 + month + index, dt.datetime(2023, month, day, 19)))
    return sent


def requests(supervisor: int) -> Sequence[Request]:
    """Return the requests a supervisor has received: paid and pending ones, of April and May, from every circle."""
    pending = []
    for index, (person, relation) in enumerate(contacts(supervisor).items()):
        moments = [dt.datetime(2023, 5, 2 + index, 9)] if relation != "friend" else []
        if relation in ("roommate", "sibling"):
            moments += [dt.datetime(2023, 4, 12 + index, 9), dt.datetime(2023, 3, 3 + index, 9)]
        for turn, moment in enumerate(moments):
            pending.append(
                Request(
                    sender=person,
                    receiver=SUPERVISORS[supervisor],
                    amount=6.25 + index + 11 * turn,
                    note=_NOTES[(index + turn) % len(_NOTES)],
                    at=moment,
                    approved=moment.month == 3,
                )
            )
    return pending


def payment_values(payment: Payment) -> Mapping[str, Any]:
    """Return the values of a payment or a request in Venmo's record of it."""
    return {
        "sender_id": payment.sender.id,
        "receiver_id": payment.receiver.id,
        "amount": payment.amount,
        "description": payment.note,
        "created_at": payment.at,
        "updated_at": payment.at,
    }


def rows() -> Iterator[Row]:
    """Yield the rows of the phone and Venmo apps."""
    for index, me in enumerate(SUPERVISORS):
        for person, relation in contacts(index).items():
            account_fields = {"user_id": me.id, "relationships": [relation], "created_at": OPENED}
            yield "phone.Contact", {**account_fields, **person.profile}
        for friend in venmo_friends(index):
            yield "venmo.Friendship", {"user_id": me.id, "friend_id": friend.id, "created_at": OPENED}
    paid = (payments(index, month) for month in _LENGTHS for index in range(len(SUPERVISORS)))
    for payment in sorted(chain.from_iterable(paid), key=lambda payment: payment.at):
        yield "venmo.Transaction", payment_values(payment)
    for request in chain.from_iterable(map(requests, range(len(SUPERVISORS)))):
        answered = request.at + dt.timedelta(days=1) if request.approved else None
        yield "venmo.PaymentRequest", {**payment_values(request), "approved_at": answered}


def _payment(sender: Person, receiver: Person, amount: float, at: dt.datetime) -> Payment:
    note = _NOTES[(sender.id + receiver.id + at.day) % len(_NOTES)]
    return Payment(sender=sender, receiver=receiver, amount=amount, note=note, at=at)
