"""An invented AppWorld data root: people, their data, tasks with ground truth; built by the real engine.

Runs in the engine's interpreter (``ace_bench.tasks.appworld.engine_side.build`` calls ``build``) and imports neither
``ace_bench`` nor the rest of this package. Modules with tables (``people``, ``music``, ``money``, ``household``) are
plain Python: the rows of the apps' databases and the right answers (``answers``) come from the same tables, while the
reference solutions in ``scenarios.toml`` find the answers through the apps' APIs.
"""

from .builder import build

__all__ = ["build"]
