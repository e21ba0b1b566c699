"""Scenarios of Spotify: superlatives over paged lists, liking and following only what is new."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .music import PLAYLISTS, Song, followed, library, liked, playlist
from .people import SUPERVISORS
from .tasks import ANSWER, DONE, FIRST_PAGE, NO_ANSWER, PAGES, Task, Test, added, answered, changed, login, solution

_SUPERLATIVES: dict[str, tuple[str, Callable[[Song], int]]] = {
    "longest": ('max(songs, key=lambda song: song["duration"])', lambda song: -song.seconds),
    "shortest": ('min(songs, key=lambda song: song["duration"])', lambda song: song.seconds),
    "most played": (
        'max(songs, key=lambda song: apis.spotify.show_song(song_id=song["song_id"])["play_count"])',
        lambda song: -song.plays,
    ),
}
"""By word: the expression over ``songs``, and the key whose smallest value it finds."""

_LISTED = "songs = all_pages(apis.spotify.{api}, access_token=spotify_token)"

_PLAYLIST = """
# Find the playlist by its exact title, then its songs.
playlists = all_pages(apis.spotify.show_playlist_library, access_token=spotify_token)
playlist_id = [p["playlist_id"] for p in playlists if p["title"] == playlist_title][0]
songs = apis.spotify.show_playlist(playlist_id=playlist_id, access_token=spotify_token)["songs"]
"""

_LIKE = """
# A song that is liked already cannot be liked again: leave those out.
liked = {{song["song_id"] for song in all_pages(apis.spotify.show_liked_songs, access_token=spotify_token)}}
for song in songs:
    if song["{key}"] not in liked{condition}:
        apis.spotify.like_song(song_id=song["{key}"], access_token=spotify_token)
"""

_LIKED_SLIP = (" not in liked", " is not None")


def scenarios() -> Iterator[Task]:
    """Yield the tasks."""
    for number, word in enumerate(("longest", "shortest", "most played"), start=1):
        yield _superlative("7f1a01", number, word, "in my Spotify song library")
    for number, title in enumerate((PLAYLISTS[5], PLAYLISTS[6], PLAYLISTS[5]), start=1):
        yield _like_playlist(number, title)
    for number, title in enumerate((PLAYLISTS[6], PLAYLISTS[5], PLAYLISTS[6]), start=1):
        yield _follow_artists(number, title)
    for number, word in enumerate(("shortest", "longest", "most played"), start=1):
        yield _superlative("7f3a01", number, word, "among the songs that I have liked on Spotify")
    for number, minutes in enumerate((4, 5, 3), start=1):
        yield _like_long(number, minutes)


def _superlative(scenario: str, number: int, word: str, where: str) -> Task:
    expression, key = _SUPERLATIVES[word]
    owned = "library" in where
    api = "show_song_library" if owned else "show_liked_songs"
    songs = library(number - 1) if owned else liked(number - 1)
    return Task(
        scenario=scenario,
        split="train" if owned else "test_normal",
        number=number,
        difficulty=1,
        instruction=f"What is the title of the {word} song {where}?",
        answer=min(songs, key=key).title,
        tests=(ANSWER, changed()),
        solution=solution(
            {}, PAGES, login("spotify"), _LISTED.format(api=api), f"song = {expression}", answered('song["title"]')
        ),
        slips=FIRST_PAGE,
    )


def _like_playlist(number: int, title: str) -> Task:
    missing = [song for song in playlist(number - 1, title) if song not in liked(number - 1)]
    return Task(
        scenario="7f1a04",
        split="train",
        number=number,
        difficulty=2,
        instruction=f'Like all the songs in my "{title}" playlist on Spotify.',
        tests=_liking_tests(),
        private={"expected": _likes(number, missing)},
        solution=solution(
            {"playlist_title": title},
            PAGES,
            login("spotify"),
            _PLAYLIST,
            _LIKE.format(key="id", condition=""),
            DONE,
        ),
        slips=(_LIKED_SLIP,),
    )


def _like_long(number: int, minutes: int) -> Task:
    long = [song for song in library(number - 1) if song.seconds > minutes * 60]
    return Task(
        scenario="7f3a06",
        split="test_normal",
        number=number,
        difficulty=2,
        instruction=f"Like all the songs in my Spotify song library that are longer than {minutes} minutes.",
        tests=_liking_tests(),
        private={"expected": _likes(number, [song for song in long if song not in liked(number - 1)])},
        solution=solution(
            {"minutes": minutes},
            PAGES,
            login("spotify"),
            _LISTED.format(api="show_song_library"),
            _LIKE.format(key="song_id", condition=' and song["duration"] > minutes * 60'),
            DONE,
        ),
        slips=FIRST_PAGE,
    )


def _follow_artists(number: int, title: str) -> Task:
    artists = {artist for song in playlist(number - 1, title) for artist in song.artists}
    missing = sorted(artists - set(followed(number - 1)))
    follow = """
        # An artist who is followed already cannot be followed again, and one can have several songs.
        artists = {artist_id for song in songs for artist_id in song["artist_ids"]}
        following = all_pages(apis.spotify.show_following_artists, access_token=spotify_token)
        followed = {artist["artist_id"] for artist in following}
        for artist_id in sorted(artists - followed):
            apis.spotify.follow_artist(artist_id=artist_id, access_token=spotify_token)
    """
    return Task(
        scenario="7f2a02",
        split="dev",
        number=number,
        difficulty=2,
        instruction=f'Follow all the artists of the songs in my "{title}" playlist on Spotify.',
        tests=(
            NO_ANSWER,
            changed("spotify.UserArtistFollowing"),
            added(
                "spotify.UserArtistFollowing",
                "exactly the artists of the playlist who were not yet followed are followed by the supervisor",
                "[e.user_id, e.artist_id]",
            ),
        ),
        private={"expected": [[SUPERVISORS[number - 1].id, artist] for artist in missing]},
        solution=solution({"playlist_title": title}, PAGES, login("spotify"), _PLAYLIST, follow, DONE),
        slips=(("artists - followed", "artists"),),
    )


def _liking_tests() -> tuple[Test, ...]:
    return (
        NO_ANSWER,
        changed("spotify.Song", "spotify.SongLike"),
        added(
            "spotify.SongLike",
            "exactly the wanted songs that were not yet liked are liked by the supervisor",
            "[e.user_id, e.song_id]",
        ),
    )


def _likes(number: int, songs: Sequence[Song]) -> list[list[int]]:
    return sorted([SUPERVISORS[number - 1].id, song.id] for song in songs)
