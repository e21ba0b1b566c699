"""Scenarios of the phone and Venmo: relationships, dates, and actions that cannot be undone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .money import Payment, Request, later_payments, payment_rows, payments, requests
from .people import LATER, NOW, SUPERVISORS, circle, venmo_friends
from .tables import Table
from .tasks import (
    ANSWER,
    DONE,
    FIRST_PAGE,
    NO_ANSWER,
    PAGES,
    TODAY,
    Task,
    Test,
    added,
    answered,
    changed,
    login,
    people,
    solution,
)

_WINDOWS = {
    "last month": "end = today.replace(day=1) - timedelta(days=1)\nstart = end.replace(day=1)",
    "this month": "start, end = today.replace(day=1), today",
    "in March of this year": "start, end = today.replace(month=3, day=1), today.replace(month=3, day=31)",
}
"""By words: the statements that find the first and the last day; both count."""

_PENDING = """
# Requests that are still pending, from those people only: a payment cannot be taken back.
requests = all_pages(apis.venmo.show_received_payment_requests, status="pending", access_token=venmo_token)
for request in requests:
    if request["sender"]["email"] in emails{condition}:
        request_id = request["payment_request_id"]
        apis.venmo.approve_payment_request(payment_request_id=request_id, access_token=venmo_token)
"""

_ANYBODY = (" in emails", ' != ""')
"""The mistake of an agent that does not look up the relationships."""


class _Sum(NamedTuple):
    relationship: str
    direction: str
    window: str

    def holds(self, payment: Payment, supervisor: int, now: dt.datetime) -> bool:
        """Whether a payment counts."""
        me, other = payment.sender, payment.receiver
        if self.direction == "received":
            me, other = other, me
        known = circle(supervisor, self.relationship)
        return me == SUPERVISORS[supervisor] and other in known and _inside(payment.at, self.window, now)


def scenarios() -> Iterator[Task]:
    """Yield the tasks."""
    train = (
        _Sum("roommate", "sent", "last month"),
        _Sum("coworker", "received", "this month"),
        _Sum("sibling", "sent", "in March of this year"),
    )
    for number, asked in enumerate(train, start=1):
        yield _sum("7f1a05", "train", number, asked)
    for number, relationship in enumerate(("coworker", "sibling", "roommate"), start=1):
        yield _befriend(number, relationship)
    for number, relationship in enumerate(("roommate", "coworker", "sibling"), start=1):
        yield _approve("7f1a08", "train", number, relationship, "")
    for number, relationship in enumerate(("coworker", "sibling", "roommate"), start=1):
        yield _text(number, relationship)
    test = (
        _Sum("coworker", "received", "last month"),
        _Sum("roommate", "received", "this month"),
        _Sum("coworker", "sent", "last month"),
    )
    for number, asked in enumerate(test, start=1):
        yield _sum("7f3a02", "test_normal", number, asked)
    for number, relationship in enumerate(("sibling", "roommate", "coworker"), start=1):
        yield _approve("7f3a03", "test_normal", number, relationship, "this month")


def _sum(scenario: str, split: str, number: int, asked: _Sum) -> Task:
    relationship, direction, window = asked
    supervisor = number - 1
    now = NOW if split == "train" else LATER
    extra = later_payments(supervisor, relationship) if now == LATER else ()
    counted = [p.amount for p in (*_all_payments(supervisor), *extra) if asked.holds(p, supervisor, now)]
    party, verb = ("receiver", "send to") if direction == "sent" else ("sender", "receive from")
    return Task(
        scenario=scenario,
        split=split,
        number=number,
        difficulty=2,
        instruction=f"How much money in total, in dollars, did I {verb} my {relationship}s on Venmo {window}?",
        answer=round(sum(counted), 2),
        now=now,
        extra=(Table(app="venmo", model="Transaction", rows=payment_rows(extra)),) if extra else (),
        tests=(ANSWER, changed()),
        solution=solution(
            {"relationship": relationship, "direction": direction},
            PAGES,
            login("phone", "venmo"),
            people("relationship"),
            TODAY,
            f"# {window.capitalize()}: both days count.\n{_WINDOWS[window]}",
            f"""
            transactions = all_pages(apis.venmo.show_transactions, direction=direction, min_created_at=str(start),
                                     max_created_at=str(end), access_token=venmo_token)
            total = sum(t["amount"] for t in transactions if t["{party}"]["email"] in emails)
            """,
            answered("total"),
        ),
        slips=FIRST_PAGE if number == 1 else (_ANYBODY,),
    )


def _befriend(number: int, relationship: str) -> Task:
    me, known = SUPERVISORS[number - 1], venmo_friends(number - 1)
    befriend = """
        # Who is a friend already cannot be added again.
        friends = {friend["email"] for friend in all_pages(apis.venmo.search_friends, access_token=venmo_token)}
        for email in sorted(emails - friends):
            apis.venmo.add_friend(user_email=email, access_token=venmo_token)
    """
    missing = [person for person in circle(number - 1, relationship) if person not in known]
    return Task(
        scenario="7f1a06",
        split="train",
        number=number,
        difficulty=2,
        instruction=f"Add all my {relationship}s as friends on Venmo.",
        tests=(
            NO_ANSWER,
            changed("venmo.Friendship"),
            added(
                "venmo.Friendship",
                f"exactly the {relationship}s who were no friends yet are added by the supervisor",
                "[e.user_id, e.friend_id]",
            ),
        ),
        private={"expected": sorted([me.id, person.id] for person in missing)},
        solution=solution(
            {"relationship": relationship},
            PAGES,
            login("phone", "venmo"),
            people("relationship"),
            befriend,
            DONE,
        ),
        slips=(("emails - friends", "emails"),),
    )


def _approve(scenario: str, split: str, number: int, relationship: str, window: str) -> Task:
    wanted = [
        request
        for request in requests(number - 1)
        if request.sender in circle(number - 1, relationship)
        and not request.approved
        and (not window or _inside(request.at, window, NOW))
    ]
    blocks = [TODAY, "# This month starts with its first day.\nstart = today.replace(day=1)"] if window else []
    condition = ' and request["created_at"] >= str(start)' if window else ""
    who = f"that my {relationship}s sent me {window}" if window else f"from my {relationship}s"
    return Task(
        scenario=scenario,
        split=split,
        number=number,
        difficulty=3,
        instruction=f"Approve all the pending payment requests {who} on Venmo.",
        tests=(
            NO_ANSWER,
            changed("venmo.User", "venmo.PaymentRequest", "venmo.Transaction", "venmo.Notification"),
            _approved(relationship),
            added(
                "venmo.Transaction", "exactly the requested amounts are paid", "[e.sender_id, e.receiver_id, e.amount]"
            ),
        ),
        private={"expected": _paid(wanted), "approved": sorted(_request_keys(number, wanted))},
        solution=solution(
            {"relationship": relationship},
            PAGES,
            login("phone", "venmo"),
            people("relationship"),
            *blocks,
            _PENDING.format(condition=condition),
            DONE,
        ),
        slips=(_ANYBODY,) if not window or relationship == "coworker" else ((condition, ""),),
    )


def _text(number: int, relationship: str) -> Task:
    me, known = SUPERVISORS[number - 1], venmo_friends(number - 1)
    words = ("Lunch is on me on Friday.", "Please call grandmother.", "The boiler is fixed.")[number - 1]
    missing = [person for person in circle(number - 1, relationship) if person not in known]
    send = """
        # Leave out those who are friends on Venmo.
        friends = {friend["email"] for friend in all_pages(apis.venmo.search_friends, access_token=venmo_token)}
        for person in people:
            if person["email"] not in friends:
                apis.phone.send_text_message(
                    phone_number=person["phone_number"], message=message, access_token=phone_token)
    """
    return Task(
        scenario="7f2a01",
        split="dev",
        number=number,
        difficulty=2,
        instruction=f'Send the text message "{words}" to each of my {relationship}s who is not my friend on Venmo.',
        tests=(
            NO_ANSWER,
            changed("phone.GlobalTextMessage", "phone.UserTextMessage"),
            added(
                "phone.GlobalTextMessage",
                "exactly the wanted people got the message once, in its exact words",
                "[e.sender_id, e.receiver_id, e.message]",
            ),
        ),
        private={"expected": sorted([me.id, person.id, words] for person in missing)},
        solution=solution(
            {"relationship": relationship, "message": words},
            PAGES,
            login("phone", "venmo"),
            people("relationship"),
            send,
            DONE,
        ),
        slips=((" not in friends", ' != ""'),),
    )


def _all_payments(supervisor: int) -> Sequence[Payment]:
    return [payment for month in (3, 4, 5) for payment in payments(supervisor, month)]


def _inside(at: dt.datetime, window: str, now: dt.datetime) -> bool:
    month = {"last month": now.month - 1, "this month": now.month, "in March of this year": 3}[window]
    return (at.year, at.month) == (now.year, month)


def _approved(relationship: str) -> Test:
    code = """
        added, updated, removed = models.changed_records("venmo.PaymentRequest")
        test.case(sorted(e.id for e in updated if e.approved_at), "==", private_data.approved)
        test.case(len(updated) - len(private_data.approved) + len(added) + len(removed), "==", 0)
    """
    return Test(requirement=f"assert exactly the pending requests of the {relationship}s are approved.", code=code)


def _paid(wanted: Sequence[Request]) -> list[list[float]]:
    return sorted([request.receiver.id, request.sender.id, request.amount] for request in wanted)


def _request_keys(number: int, wanted: Sequence[Request]) -> list[int]:
    earlier = sum(len(requests(index)) for index in range(number - 1))
    return [earlier + 1 + requests(number - 1).index(request) for request in wanted]
