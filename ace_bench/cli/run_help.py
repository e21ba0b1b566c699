"""The help of ``ace-bench run``, without Hydra, which would take a second to import launchers and compose a
configuration."""

from __future__ import annotations

import msgspec

from ace_bench.core.program import command_line
from ace_bench.core.resources import config_folders, configs_folder, options

_GROUPS = "$APP_CONFIG_GROUPS"
_WRITTEN = "python run.py"
"""The command's placeholder in the template of ``config.yaml``."""


def help_text() -> str:
    """Return the template of ``hydra.help`` in ``config.yaml``, with the config groups and their options."""
    config = msgspec.yaml.decode((configs_folder() / "config.yaml").read_bytes())
    template: str = config["hydra"]["help"]["template"]
    folders = config_folders()
    names = sorted({path.name for folder in folders for path in folder.iterdir() if path.is_dir()})
    listing = "".join(f"{name}: {', '.join(options(name, folders))}\n" for name in names)
    return template.replace(_GROUPS, listing).replace(_WRITTEN, command_line("run"))
