"""The right answers and expected records of the scenarios, from the tables of the mini-world.

Each function is named after a kind of scenario. It gets the supervisor's index and the scenario's values, and returns
the fields of ``Task`` that depend on them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from .household import BILLS, chores, files, notes, packing_list, song_list
from .money import later_payments, payment_values, payments, requests
from .music import SONGS, Song, followed, library, liked, playlist
from .people import LATER, NOW, SUPERVISORS, circle, venmo_friends

Values = Mapping[str, Any]
"""A scenario's keys in ``scenarios.toml``, with the keys of one task."""


def superlative(supervisor: int, values: Values) -> Values:
    """Find a title in the library or among the liked songs."""
    songs = library(supervisor) if values["api"] == "show_song_library" else liked(supervisor)
    keys: Mapping[str, Callable[[Song], int]] = {
        "longest": lambda song: -song.seconds,
        "shortest": lambda song: song.seconds,
        "most played": lambda song: -song.plays,
    }
    return {"answer": min(songs, key=keys[values["word"]]).title}


def like(supervisor: int, values: Values) -> Values:
    """Like the songs of a playlist, or the long ones of the library."""
    if title := values.get("playlist_title"):
        songs = playlist(supervisor, title)
    else:
        songs = [song for song in library(supervisor) if song.seconds > values["minutes"] * 60]
    missing = [song.id for song in songs if song not in liked(supervisor)]
    return _expect(sorted([SUPERVISORS[supervisor].id, song] for song in missing))


def follow(supervisor: int, values: Values) -> Values:
    """Follow the artists of a playlist."""
    artists = {artist for song in playlist(supervisor, values["playlist_title"]) for artist in song.artists}
    return _expect([[SUPERVISORS[supervisor].id, artist] for artist in sorted(artists - set(followed(supervisor)))])


def sum_payments(supervisor: int, values: Values) -> Values:
    """Add up the payments to or from a circle. Held-out tasks play later and have further payments."""
    now = NOW if values["split"] == "train" else LATER
    friends = circle(supervisor, values["relationship"])
    extra = later_payments(supervisor, values["relationship"]) if now == LATER else ()
    total = 0.0
    spring = chain.from_iterable(payments(supervisor, month) for month in (3, 4, 5))
    for payment in chain(spring, extra):
        me, counterpart = payment.sender, payment.receiver
        if values["direction"] == "received":
            me, counterpart = counterpart, me
        if me == SUPERVISORS[supervisor] and counterpart in friends and _is_inside(payment.at, values["window"], now):
            total += payment.amount
    later = [("venmo.Transaction", payment_values(payment)) for payment in extra]
    return {"answer": round(total, 2), "now": now, "extra": later}


def befriend(supervisor: int, values: Values) -> Values:
    """Add the members of a circle who are not yet friends."""
    friends = venmo_friends(supervisor)
    missing = [person.id for person in circle(supervisor, values["relationship"]) if person not in friends]
    return _expect(sorted([SUPERVISORS[supervisor].id, person] for person in missing))


def approve(supervisor: int, values: Values) -> Values:
    """Approve the pending requests of a circle, perhaps of one month only."""
    earlier = sum(len(requests(index)) for index in range(supervisor))
    wanted = {
        key: request
        for key, request in enumerate(requests(supervisor), start=earlier + 1)
        if request.sender in circle(supervisor, values["relationship"])
        and not request.approved
        and ("window" not in values or _is_inside(request.at, values["window"], NOW))
    }
    paid = sorted([request.receiver.id, request.sender.id, request.amount] for request in wanted.values())
    return _expect(paid, approved=sorted(wanted))


def text(supervisor: int, values: Values) -> Values:
    """Send a message to the members of a circle who are not friends."""
    missing = befriend(supervisor, values)["private"]["expected"]
    return _expect([[*pair, values["message"]] for pair in missing])


def count_files(supervisor: int, values: Values) -> Values:
    """Count the files of a type directly in a directory."""
    inside = f"{SUPERVISORS[supervisor].home}{values['directory']}/"
    names = [path.removeprefix(inside) for path in files(supervisor) if path.startswith(inside)]
    return {"answer": sum(path.endswith(values["extension"]) and "/" not in path for path in names)}


def list_notes(supervisor: int, values: Values) -> Values:
    """List the titles of the notes with a tag."""
    titles = sorted(title for title, tag in notes(supervisor).items() if tag == values["tag"])
    return {"answer": ", ".join(titles), "private": {"titles": titles}}


def count_notes(supervisor: int, values: Values) -> Values:
    """Count the notes with a tag."""
    return {"answer": len(list_notes(supervisor, values)["private"]["titles"])}


def complete(supervisor: int, values: Values) -> Values:
    """Complete the open tasks of a project that have a priority or, without one, are overdue."""
    priority, project = values.get("priority"), values["project_name"]
    wanted = [
        chore.title
        for chore in chores(supervisor, project)
        if not chore.done and (chore.priority == priority if priority else chore.due < NOW)
    ]
    return {"private": {"titles": sorted(wanted), "project": project}}


def split_bill(supervisor: int, values: Values) -> Values:
    """Request the roommates' shares of a bill."""
    mates = circle(supervisor, "roommate")
    share = round(dict(BILLS[supervisor])[values["subject"]] / (len(mates) + 1), 2)
    return _expect(sorted([SUPERVISORS[supervisor].id, mate.id, share, values["note"]] for mate in mates))


def pack(supervisor: int, values: Values) -> Values:
    """Add what is on the packing list and not yet in the project."""
    items, project = packing_list(supervisor), values["project_name"]
    titles = {chore.title for chore in chores(supervisor, project)}
    return _expect(sorted([SUPERVISORS[supervisor].id, item, project] for item in items if item not in titles))


def make_playlist(supervisor: int, values: Values) -> Values:
    """Make a playlist of the songs in a note."""
    songs = sorted(song.id for song in SONGS if song.title in song_list(supervisor))
    return _expect(songs, playlist=[SUPERVISORS[supervisor].id, values["playlist_title"], False])


def _expect(expected: object, **more: object) -> Values:
    return {"private": {"expected": expected, **more}}


def _is_inside(time: dt.datetime, window: str, now: dt.datetime) -> bool:
    month = {"last month": now.month - 1, "this month": now.month, "in March of this year": 3}[window]
    return (time.year, time.month) == (now.year, month)
