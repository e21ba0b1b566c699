"""Spotify: songs, artists and each supervisor's library, likes and followed artists."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .people import OPENED, SUPERVISORS
from .tables import Row

_ARTISTS = """
The Copper Herons, Salt and Cinder, Wren Abernathy, Slow Ferry, Quiet Machinery, Ottoline Frey, Harbour Static,
The Paper Astronomers, Moss Cathedral
"""
ARTISTS = tuple(name.strip() for name in _ARTISTS.replace("\n", " ").split(","))

_FIRST = ("Amber", "Borrowed", "Crooked", "Distant", "Electric", "Folded", "Gentle")
_SECOND = ("Lighthouse", "Orchard", "Staircase", "Telegram", "Umbrella", "Window")

PLAYLISTS = ("Slow Sunday", "Long Drive", "Dish Duty", "First Coffee", "Night Shift", "Garden Work", "Rain Indoors")
"""Every supervisor's playlists in order of creation; the last two are not among the first five."""


class Song(NamedTuple):
    """A song; ``seconds`` and ``plays`` differ between all songs, ``artists`` are keys from 1."""

    id: int
    title: str
    seconds: int
    plays: int
    artists: tuple[int, ...]


def _song(number: int) -> Song:
    lead, guest = number % len(ARTISTS) + 1, number * 4 % len(ARTISTS) + 1
    return Song(
        id=number + 1,
        title=f"{_FIRST[number % 7]} {_SECOND[number % 6]}",
        seconds=140 + number * 37 % 191,
        plays=1000 + number * 59 % 997,
        artists=(lead,) if number % 2 or guest == lead else (lead, guest),
    )


SONGS = tuple(_song(number) for number in range(len(_FIRST) * len(_SECOND)))


def library(supervisor: int) -> Sequence[Song]:
    """Return the 27 songs of a supervisor's library in the order they were added."""
    return [SONGS[(11 * supervisor + index) % len(SONGS)] for index in range(27)]


def liked(supervisor: int) -> Sequence[Song]:
    """Return the songs a supervisor likes, the earliest liked first: every third of the library."""
    return library(supervisor)[::3]


def playlist(supervisor: int, title: str) -> Sequence[Song]:
    """Return the songs of a supervisor's playlist: five of the library, no two playlists start alike."""
    start = 3 * PLAYLISTS.index(title)
    return library(supervisor)[start : start + 5]


def followed(supervisor: int) -> Sequence[int]:
    """Return the keys of the artists a supervisor follows."""
    return [(supervisor + step) % len(ARTISTS) + 1 for step in (0, 2, 3, 5, 6)]


def rows() -> Iterator[Row]:
    """Yield Spotify's rows."""
    for name in ARTISTS:
        yield "spotify.Artist", {"name": name, "genre": "indie", "created_at": OPENED}
    for song in SONGS:
        yield (
            "spotify.Song",
            {
                "title": song.title,
                "artist_ids": list(song.artists),
                "duration": song.seconds,
                "release_date": dt.datetime(2000 + song.id % 20, 1 + song.id % 12, 3),
                "genre": "indie",
                "play_count": song.plays,
            },
        )
    playlists = 0
    for index, me in enumerate(SUPERVISORS):
        yield "spotify.MusicPlayer", {"user_id": me.id, "queue_song_ids": [1, 2, 3], "cursor_position": 0}
        for day, song in enumerate(library(index)):
            moment = OPENED + dt.timedelta(days=day)
            yield "spotify.UserLibrarySong", {"user_id": me.id, "song_id": song.id, "created_at": moment}
        for day, song in enumerate(liked(index)):
            moment = OPENED + dt.timedelta(days=day)
            yield "spotify.SongLike", {"user_id": me.id, "song_id": song.id, "liked_at": moment}
        for artist in followed(index):
            yield "spotify.UserArtistFollowing", {"user_id": me.id, "artist_id": artist, "created_at": OPENED}
        for title in PLAYLISTS:
            playlists += 1
            yield "spotify.Playlist", {"title": title, "user_id": me.id, "created_at": OPENED}
            for song in playlist(index, title):
                yield "spotify.PlaylistSong", {"playlist_id": playlists, "song_id": song.id, "added_at": OPENED}
