"""The packages of examples/ keep to the interfaces: `make lint` checks the types of this file, which nothing runs."""

from ace_bench.core.backbones import Backbone
from ace_bench.core.context import Context
from ace_bench.core.method import Method
from ace_bench.core.task import Task
from ace_bench.playbook.playbook import Playbook
from ace_failures import make_ace_failures
from capital_cities import CapitalCities
from last_mistakes import LastMistakes, Mistakes
from program_backbone import Program


def conform(
    a: CapitalCities, b: LastMistakes, c: Mistakes, d: Program
) -> tuple[Task, Method[Mistakes], Context, Backbone, Method[Playbook]]:
    return a, b, c, d, make_ace_failures()
