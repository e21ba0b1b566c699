"""YAML models that reject unknown keys."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from typing import Any

import msgspec

from ace_bench.core.encoding import converted
from ace_bench.core.errors import DataError


class YamlModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen value whose fields are the keys of a file."""


def read_yaml(file: Traversable, kind: Any) -> Any:
    """Read a YAML file as a value of type ``kind``; raises ``DataError`` that names the file and the error."""
    try:
        return converted(msgspec.yaml.decode(file.read_bytes()), kind)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error}; restore it") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(f"{file} is damaged: {error}; restore it") from error
