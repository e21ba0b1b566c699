"""Files, notes and to-do lists of the supervisors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .music import library
from .people import NOW, OPENED, PEOPLE, SUPERVISORS
from .tables import Row

PROJECTS = ("Kitchen refit", "Garden shed", "Camping", "Book club", "Choir trip", "Attic", "Bicycle", "Language course")
"""Every supervisor's to-do projects, the oldest first; the app shows the newest first, five at a time."""

BILLS = ((("electricity", 129.0), ("internet", 45.0)), (("electricity", 96.0), ("water", 58.5)), (("gas", 187.5),))
"""The subjects and totals in dollars of each supervisor's bills of April."""

_VERBS = ("Measure", "Order", "Paint", "Repair", "Sort", "Return", "Price", "Photograph", "Label", "Clean")

PACKING = ("tent pegs", "torch", "kettle", "rope", "sleeping mat", "matches", "water can", "map")

_TITLES = {
    "recipes": "Barley soup, Plum cake, Chestnut stew, Leek pie, Oat bread, Beet salad, Pear tart, Curry",
    "travel": "Night train, Ferry times, Hill huts, Canal walk, Island bus, Passes, Guest rooms, Old town",
    "reading": "Sea novels, Essays, Star maps, Folk tales, City plans, Bird atlas, Letters, Grammar",
}
"""Titles of notes by tag."""


class Chore(NamedTuple):
    """A to-do task; ``section`` is 0 for none, else the number of one of its project's two sections."""

    title: str
    section: int
    due: dt.datetime
    priority: str
    done: bool


def files(supervisor: int) -> Mapping[str, str]:
    """Return the contents of a supervisor's files by path: photos and documents, also in subdirectories, and bills."""
    home = SUPERVISORS[supervisor].home
    paths = [f"photos/harbour_{number}.jpg" for number in range(4 + supervisor)]
    paths += [f"photos/archive/harbour_{number}.jpg" for number in range(20, 23)]
    paths += [f"photos/poster_{number}.png" for number in range(6 - supervisor)]
    paths += [f"photos/archive/poster_{number}.png" for number in range(30, 32)]
    paths += [f"documents/letter_{number}.pdf" for number in range(5 + supervisor)]
    paths += [f"documents/old/letter_{number}.pdf" for number in range(40, 44)]
    paths += ["documents/letter_draft.txt", "photos/readme.txt"]
    contents = {home + path: f"invented content of {path}" for path in paths}
    for subject, total in BILLS[supervisor]:
        contents[f"{home}bills/april_{subject}.txt"] = f"Bill for {subject}\nPeriod: April 2023\nTotal: ${total:.2f}\n"
        contents[f"{home}bills/march_{subject}.txt"] = (
            f"Bill for {subject}\nPeriod: March 2023\nTotal: ${total - 9:.2f}\n"
        )
    return contents


def notes(supervisor: int) -> Mapping[str, str]:
    """Return the tags of a supervisor's notes by title; more notes share a tag than fit on one page."""
    by_row = zip(*(titles.split(", ") for titles in _TITLES.values()), strict=True)
    pairs = [pair for titles in by_row for pair in zip(titles, _TITLES, strict=True)]
    return {title: tag for index, (title, tag) in enumerate(pairs) if (index + 2 * supervisor) % (5 + supervisor) != 4}


def song_list(supervisor: int) -> Sequence[str]:
    """Return the titles that a supervisor's note names for a playlist to be made."""
    return [song.title for song in library(supervisor)[supervisor + 1 :: 5]]


def packing_list(supervisor: int) -> Sequence[str]:
    """Return the things that a supervisor's note says to pack."""
    return PACKING[supervisor : supervisor + 6]


def chores(supervisor: int, project: str) -> Sequence[Chore]:
    """Return the to-do tasks of a project in order: in no section, then in two; overdue, done and urgent ones in each.

    Two tasks of the project ``Camping`` are also on the packing list.
    """
    offset = PROJECTS.index(project)
    titles = [f"{_VERBS[(step + offset) % len(_VERBS)]} the {project.lower()} things" for step in range(9)]
    if project == "Camping":
        titles[:2] = packing_list(supervisor)[1:3]
    return [
        Chore(
            title=title,
            section=step // 3,
            due=NOW.replace(hour=0) + dt.timedelta(days=(-9, 6, -2, -4, -7, 11, 3, -1, -12)[(step + supervisor) % 9]),
            priority=("high", "low", "medium", "high")[(step + supervisor + offset) % 4],
            done=step % 4 == 0,
        )
        for step, title in enumerate(titles)
    ]


def rows() -> Iterator[Row]:
    """Yield the rows of the file system, the notes and the to-do app."""
    for person in PEOPLE:
        inside = ("photos/", "photos/archive/", "documents/", "documents/old/", "bills/")
        for path in ("/", "/home/", *(person.home + name for name in ("", *inside * (person in SUPERVISORS)))):
            yield "file_system.Directory", {"path": path, "user_id": person.id, **_stamps(0)}
    for index, me in enumerate(SUPERVISORS):
        for path, text in files(index).items():
            yield "file_system.File", {"path": path, "user_id": me.id, "content": text, **_stamps(0)}
        texts = {title: (f"Some thoughts: {title.lower()}.", [tag]) for title, tag in notes(index).items()}
        texts["Songs for the road"] = ("\n".join(song_list(index)), ["lists"])
        texts["Packing list"] = ("\n".join(f"- {item}" for item in packing_list(index)), ["lists"])
        for day, (title, (content, tags)) in enumerate(texts.items()):
            values = {"title": title, "content": content, "tags": tags, "pinned": False}
            yield "simple_note.Note", {"user_id": me.id, **values, **_stamps(day)}
    yield from _todo_rows()


def _stamps(days: int) -> dict[str, dt.datetime]:
    return {"created_at": OPENED + dt.timedelta(days=days), "updated_at": OPENED + dt.timedelta(days=days)}


def _todo_rows() -> Iterator[Row]:
    projects = sections = 0
    for index, me in enumerate(SUPERVISORS):
        for day, name in enumerate(("Inbox", *PROJECTS)):
            projects += 1
            stamp = {"created_at": OPENED + dt.timedelta(days=day)}
            yield "todoist.Project", {"user_id": me.id, "name": name, "is_inbox": name == "Inbox", **stamp}
            yield "todoist.ProjectCollaboratorLink", {"project_id": projects, "user_id": me.id}
            if name == "Inbox":
                continue
            for order, section in enumerate(("Indoors", "Outdoors")):
                yield "todoist.Section", {"project_id": projects, "name": section, "order_index": order, **stamp}
            for step, chore in enumerate(chores(index, name)):
                yield (
                    "todoist.Task",
                    {
                        "project_id": projects,
                        "section_id": sections + chore.section if chore.section else None,
                        "user_id": me.id,
                        "title": chore.title,
                        "description": "",
                        "due_date": chore.due,
                        "priority": chore.priority,
                        "is_completed": chore.done,
                        "order_index": step % 3,
                        **stamp,
                    },
                )
            sections += 2
