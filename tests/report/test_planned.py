"""Which settings a run on disk has, and so which plan it fulfils."""

from types import SimpleNamespace

from ace_bench.cli.results import config_folders
from ace_bench.core.identity import identity_settings
from ace_bench.report.matching import settings_with_defaults
from ace_bench.runners.planning import Composer


def test_a_run_on_a_server_of_ones_own_has_no_settings_of_a_server_that_runs_start():
    chosen = {"task": "finer", "method": "base", "mode": "offline", "backbone": "smollm2"}
    compose = Composer(config_folders())
    own = ("backbone.launch=false", "backbone.url=http://localhost:8000", "backbone.model=smollm2")
    settings = identity_settings(compose([*(f"{group}={name}" for group, name in chosen.items()), *own]))
    assert "server" not in settings["backbone"]
    assert settings_with_defaults(SimpleNamespace(**chosen, identity=settings), compose) == settings
