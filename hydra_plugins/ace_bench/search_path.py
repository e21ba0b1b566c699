"""Puts the config folders of other packages on Hydra's search path, after ours."""

from __future__ import annotations

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin

from ace_bench.core.resources import config_folders


class PackagesSearchPath(SearchPathPlugin):
    """Adds the folders that entry points and ``--config-dir`` name."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Append them; Hydra calls this before it composes."""
        for folder in config_folders()[1:]:
            search_path.append(provider=str(folder.parent.name), path=f"file://{folder}")
