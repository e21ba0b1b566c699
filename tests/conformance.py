"""The guide's package keeps to the interfaces: `make lint` checks the types of this file, which nothing runs."""

from capital_cities.notes import LastNotes, Notes
from capital_cities.task import CapitalCities
from capital_cities.urllib_chat import UrllibChat

from ace_bench.core.backbones import Backbone
from ace_bench.core.context import Context
from ace_bench.core.method import Method
from ace_bench.core.task import Task


def conform(
    a: CapitalCities, b: Notes, c: LastNotes, d: UrllibChat
) -> tuple[Task, Method[LastNotes], Context, Backbone]:
    return a, b, c, d
