"""Scenarios of the challenge split: two or three apps combined, with APIs that no other scenario uses."""

from __future__ import annotations

from collections.abc import Iterator

from .household import BILLS, packing_list, song_list
from .music import SONGS
from .people import SUPERVISORS, circle
from .scenarios_household import PROJECT, TASKS
from .tasks import DONE, NO_ANSWER, PAGES, Task, Test, added, changed, login, people, solution

_NOTE = """
# A search shows no contents: find the note by its exact title, then read it.
found = all_pages(apis.simple_note.search_notes, query=note_title, access_token=simple_note_token)
note_id = [note["note_id"] for note in found if note["title"] == note_title][0]
content = apis.simple_note.show_note(note_id=note_id, access_token=simple_note_token)["content"]
lines = [line.removeprefix("- ").strip() for line in content.splitlines() if line.strip()]
"""


def scenarios() -> Iterator[Task]:
    """Yield the tasks."""
    for number in range(1, len(SUPERVISORS) + 1):
        yield _split_bill(number)
    for number in range(1, len(SUPERVISORS) + 1):
        yield _pack(number)
    for number, title in enumerate(("Road Songs", "On The Way", "Motorway"), start=1):
        yield _make_playlist(number, title)


def _split_bill(number: int) -> Task:
    me, mates = SUPERVISORS[number - 1], circle(number - 1, "roommate")
    subject, total = BILLS[number - 1][0]
    note, share = f"April {subject}", round(total / (len(mates) + 1), 2)
    request = """
        # The bill's total, split equally between the roommates and me; nobody is asked for my share.
        path = f"~/bills/april_{subject}.txt"
        content = apis.file_system.show_file(file_path=path, access_token=file_system_token)["content"]
        total = float(content.split("Total: $")[1].split()[0])
        share = round(total / (len(people) + 1), 2)
        for person in people:
            apis.venmo.create_payment_request(
                user_email=person["email"], amount=share, description=note, access_token=venmo_token)
    """
    return Task(
        scenario="7f4a01",
        split="test_challenge",
        number=number,
        difficulty=3,
        instruction=f"The {subject} bill of April is in the bills directory of my home folder. It is to be split "
        f"equally between me and my roommates. Request their shares from them on Venmo, with the note "
        f'"{note}".',
        tests=(
            NO_ANSWER,
            changed("venmo.PaymentRequest", "venmo.Notification"),
            added(
                "venmo.PaymentRequest",
                "each roommate is asked once for the right share with the right note",
                "[e.sender_id, e.receiver_id, round(e.amount, 2), e.description]",
            ),
        ),
        private={"expected": sorted([me.id, mate.id, share, note] for mate in mates)},
        solution=solution(
            {"relationship": "roommate", "subject": subject, "note": note},
            PAGES,
            login("file_system", "phone", "venmo"),
            people("relationship"),
            request,
            DONE,
        ),
        slips=(("(len(people) + 1)", "len(people)"),),
    )


def _pack(number: int) -> Task:
    items = packing_list(number - 1)
    create = """
        titles = {task["title"] for task in tasks}
        for line in lines:
            if line not in titles:
                apis.todoist.create_task(project_id=project_id, title=line, access_token=todoist_token)
    """
    return Task(
        scenario="7f4a02",
        split="test_challenge",
        number=number,
        difficulty=3,
        instruction='Add a task to my Todoist project "Camping" for each item of my Simple Note note "Packing list" '
        "that is not yet one of the project's tasks, with the item as title.",
        tests=(
            NO_ANSWER,
            changed("todoist.Task"),
            added(
                "todoist.Task",
                "exactly the missing items are added to the project",
                "[e.user_id, e.title, e.project.name]",
            ),
        ),
        private={
            "expected": sorted(
                [SUPERVISORS[number - 1].id, item, "Camping"] for item in items if item not in items[1:3]
            )
        },
        solution=solution(
            {"project_name": "Camping", "note_title": "Packing list"},
            PAGES,
            login("simple_note", "todoist"),
            _NOTE,
            PROJECT,
            TASKS,
            create,
            DONE,
        ),
        slips=((" not in titles", ' != ""'),),
    )


def _make_playlist(number: int, title: str) -> Task:
    keys = {song.title: song.id for song in SONGS}
    create = """
        # A search finds similar titles too: take the exact one.
        playlist = apis.spotify.create_playlist(title=playlist_title, is_public=False, access_token=spotify_token)
        for line in lines:
            matches = all_pages(apis.spotify.search_songs, query=line)
            song_id = [song["song_id"] for song in matches if song["title"] == line][0]
            apis.spotify.add_song_to_playlist(
                playlist_id=playlist["playlist_id"], song_id=song_id, access_token=spotify_token)
    """
    same = Test(
        requirement="assert the supervisor has one new private playlist of that title.",
        code="""
            added, updated, removed = models.changed_records("spotify.Playlist")
            test.case([[e.user_id, e.title, e.is_public] for e in added], "==", [private_data.playlist])
            test.case(len(updated) + len(removed), "==", 0)
        """,
    )
    return Task(
        scenario="7f4a03",
        split="test_challenge",
        number=number,
        difficulty=3,
        instruction=f'Make a private playlist named "{title}" on Spotify with the songs that my Simple Note note '
        '"Songs for the road" lists.',
        tests=(
            NO_ANSWER,
            changed("spotify.Playlist", "spotify.PlaylistSong"),
            same,
            added("spotify.PlaylistSong", "exactly the listed songs are in the new playlist", "e.song_id"),
        ),
        private={
            "expected": sorted(keys[name] for name in song_list(number - 1)),
            "playlist": [SUPERVISORS[number - 1].id, title, False],
        },
        solution=solution(
            {"playlist_title": title, "note_title": "Songs for the road"},
            PAGES,
            login("simple_note", "spotify"),
            _NOTE,
            create,
            DONE,
        ),
        slips=(("query=line)", "query=line.split()[0])[:1]"), (' if song["title"] == line', "")),
    )
