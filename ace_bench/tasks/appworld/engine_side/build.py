"""Builds a data root with the engine, by a package that the harness names: the mini-world.

    python -m engine_side.build PACKAGE ROOT

``PACKAGE`` is the folder of a Python package whose ``build(root)`` writes the data root at ``ROOT``, a folder that does
not exist yet. The package is imported from its folder, so that nothing beside it is importable in this interpreter.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def main() -> None:
    """Import the package and build."""
    folder, root = map(Path, sys.argv[1:])
    spec = spec_from_file_location(folder.name, folder / "__init__.py", submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise SystemExit(f"{folder} is not the folder of a Python package")
    package = sys.modules[folder.name] = module_from_spec(spec)
    spec.loader.exec_module(package)
    package.build(root)


if __name__ == "__main__":
    main()
