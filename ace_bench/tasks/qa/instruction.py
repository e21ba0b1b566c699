"""The instruction that opens every prompt: a text, or a file that holds one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ace_bench.core.digest import digest_of_text
from ace_bench.core.errors import SettingError

_SUFFIXES = (".txt", ".md")


def read_instruction(setting: str | None, default: str) -> tuple[str, Mapping[str, str]]:
    """Return the instruction with a line break at its end, and its checksum; a name in .txt or .md is a file."""
    if setting is None:
        return f"{default}\n", {}
    text = setting
    if setting.endswith(_SUFFIXES) and "\n" not in setting:
        try:
            text = Path(setting).expanduser().read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingError(f"instruction={setting} cannot be read: {error}; name a text file in UTF-8") from error
    if not text.strip():
        raise SettingError(f"instruction={setting} is empty; write what the model shall do, or set it to null")
    return f"{text.strip()}\n", {"instruction": digest_of_text(text.strip())}
