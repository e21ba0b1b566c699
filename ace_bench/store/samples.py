"""The samples of a run in its folder, without reference answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ace_bench.core.errors import DataError
from ace_bench.core.typed import converted
from ace_bench.core.types import Record, Sample

SAMPLES = "samples.json"


class _Stored(msgspec.Struct):
    split: str
    inputs: dict[str, int]


class _File(msgspec.Struct):
    texts: list[str]
    samples: dict[str, _Stored]


def packed(samples: Iterable[Sample]) -> Record:
    """Return samples as a JSON object in which each text is stored once, since samples often share long texts."""
    texts: dict[str, int] = {}
    stored = {
        sample.id: {
            "split": sample.split,
            "inputs": {name: texts.setdefault(text, len(texts)) for name, text in sample.inputs.items()},
        }
        for sample in samples
    }
    return {"texts": list(texts), "samples": stored}


def unpacked(record: Record) -> Mapping[str, Sample]:
    """Return samples by id from what ``packed`` gave; raises ``DataError``."""
    try:
        file: _File = converted(record, _File)
        return {
            name: Sample(id=name, split=one.split, inputs={key: file.texts[at] for key, at in one.inputs.items()})
            for name, one in file.samples.items()
        }
    except (msgspec.ValidationError, IndexError) as error:
        raise DataError(f"{SAMPLES} is damaged: {error}; restore it, or repeat the run") from error
