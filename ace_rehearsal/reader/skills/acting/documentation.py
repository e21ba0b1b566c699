"""What an agent has read of the API documentation so far."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_ASKED = re.compile(r"show_api_descriptions\(app_name='(\w+)'\)")
_ENUMERATED = re.compile(r"'([^'\n]{1,60})'")
_JSON = json.JSONDecoder()


@dataclass(frozen=True, kw_only=True)
class Api:
    """One API: ``parameters`` by name with whether they are required, ``options`` the values that some can take."""

    name: str
    parameters: Mapping[str, bool]
    options: Mapping[str, tuple[str, ...]]
    fields: tuple[str, ...]
    """Fields of what it returns, or of the items where it returns a list."""
    lists: bool
    plural_options: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()

    @property
    def paged(self) -> bool:
        """Whether it returns its results in pages."""
        return "page_index" in self.parameters


@dataclass(frozen=True, kw_only=True)
class Documentation:
    """``descriptions`` by app: the APIs it has; ``apis`` by ``app.api``."""

    descriptions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    apis: Mapping[str, Api] = field(default_factory=dict)


def read_documentation(steps: Sequence[tuple[str, str]]) -> Documentation:
    """Gather what the outputs of steps say; a step is code and output."""
    descriptions: dict[str, tuple[str, ...]] = {}
    apis: dict[str, Api] = {}
    for code, output in steps:
        values = list(_values(output)) if "api_docs" in code else []
        lists = [value for value in values if isinstance(value, list)]
        for app, found in zip(_ASKED.findall(code), lists, strict=False):
            descriptions[app] = tuple(str(api["name"]) for api in found if isinstance(api, dict) and "name" in api)
        for value in values:
            api = _api(value)
            if api is not None:
                apis[api.name] = api
    return Documentation(descriptions=descriptions, apis=apis)


def _values(text: str) -> Iterator[Any]:
    place = 0
    while place < len(text):
        start = re.compile(r"[\[{]").search(text, place)
        if start is None:
            return
        try:
            value, place = _JSON.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            return
        yield value


def _api(value: Any) -> Api | None:
    match value:
        case {"app_name": str(app), "api_name": str(name), "parameters": list(parameters), **rest}:
            known = [one for one in parameters if isinstance(one, dict) and "name" in one]
            schemas = rest.get("response_schemas")
            success = schemas.get("success") if isinstance(schemas, dict) else None
            item = success[0] if isinstance(success, list) and success else success
            fields = item if isinstance(item, dict) else {}
            return Api(
                name=f"{app}.{name}",
                parameters={str(one["name"]): bool(one.get("required")) for one in known},
                options={
                    str(one["name"]): tuple(_ENUMERATED.findall(str(one.get("constraints")).replace('"', "")))
                    for one in known
                    if "value in" in str(one.get("constraints"))
                },
                fields=tuple(map(str, fields)),
                lists=isinstance(success, list),
                plural_options=tuple(str(one["name"]) for one in known if str(one.get("type")).startswith("list")),
                dates=tuple(str(name) for name, shown in fields.items() if re.match(r"\d{4}-\d\d-\d\d", str(shown))),
            )
    return None
