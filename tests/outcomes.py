"""What becomes of cases, as texts for a snapshot."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any


def outcome(function: Callable[..., object], *arguments: object, **named: object) -> object:
    """Return what a function returns, or the name and the message of the error that it raises."""
    try:
        return function(*arguments, **named)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def outcomes(
    function: Callable[[Any], object], cases: Iterable[object], stand_ins: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the outcome of each case; ``stand_ins`` replace what differs between runs, such as a folder."""
    pairs = [(case, outcome(function, case)) for case in cases]
    for text, stand_in in (stand_ins or {}).items():
        pairs = [(case, str(result).replace(text, stand_in)) for case, result in pairs]
    return as_texts(pairs)


def as_texts(pairs: Iterable[tuple[object, object]]) -> dict[str, str]:
    """Return pairs of a case and its outcome as texts. The same case twice would hide an outcome."""
    texts: dict[str, str] = {}
    for case, result in pairs:
        key = str(case) if str(case).isprintable() else repr(case)
        assert key not in texts, key
        text = str(result)
        # A file of snapshots cannot hold every character, such as a carriage return.
        texts[key] = text if text.replace("\n", "").isprintable() else repr(text)
    return texts


def outcomes_by_name(
    functions: Mapping[str, Callable[[Any], object]],
    cases: Mapping[str, Iterable[object]],
    stand_ins: Mapping[str, str] | None = None,
) -> dict[str, dict[str, str]]:
    """Return the outcomes of each function's cases."""
    return {name: outcomes(functions[name], given, stand_ins) for name, given in cases.items()}
