"""Builds the data root with the engine: base databases, API documentation, task folders, lists of tasks.

Two builds give equal task files and equal database contents.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from itertools import chain, groupby, product
from pathlib import Path

from . import household, money, music
from .people import APPS, NOW, OPENED, PEOPLE
from .tables import Row, insert
from .tasks import SPLITS, Task, all_tasks

_BASE = ":memory:base"
"""The engine's name for the base databases while they are built; on disk this takes several times as long."""
_BORN = {"birthday": "1990-01-01", "sex": "female"}


def build(root: Path) -> None:
    """Write the data root at ``root``, which must not exist yet.

    Works once in a process: the engine keeps the first root that it has read. Raises ``RuntimeError`` if the engine
    was imported before.
    """
    if "appworld" in sys.modules:
        raise RuntimeError("the engine was imported before and has read another data root; build in a new process")
    data = root / "data"
    data.mkdir(parents=True)
    os.environ["APPWORLD_ROOT"] = str(root)  # before the first import: the engine derives its paths from it
    from appworld import update_root
    from appworld.common.constants import DB_VERSION
    from appworld.common.utils import freeze_time

    update_root(str(root))
    with freeze_time(NOW):
        _build_base(data)
    tasks = sorted(all_tasks(), key=lambda task: task.id)
    for now, of_that_time in groupby(sorted(tasks, key=lambda task: task.now), key=lambda task: task.now):
        with freeze_time(now):  # once for many tasks: freezing takes as long as building a task
            for task in of_that_time:
                _build_databases(task, data / "tasks" / task.id / "dbs")
    for task in tasks:
        _write_task(task, data / "tasks" / task.id, DB_VERSION)
        _write(root / "naive_solutions" / f"{task.id}.py", f"{task.naive}\n\nsolution(apis, requester)\n")
    for split in SPLITS:
        _write(data / "datasets" / f"{split}.txt", "".join(f"{task.id}\n" for task in tasks if task.split == split))
    _write(data / "version.txt", DB_VERSION)


def _build_base(data: Path) -> None:
    from appworld.apps import get_all_apps
    from appworld.apps.api_lib import save_local_dbs, set_local_dbs
    from appworld.apps.model_lib import CachedDBHandler, ModelHashHandler

    apps = get_all_apps()
    set_local_dbs(_BASE, _BASE, apps, create=True)
    insert([*_accounts(), *_documentation(data), *money.rows(), *music.rows(), *household.rows()])
    save_local_dbs(_BASE, str(data / "base_dbs"), format="full", app_names=list(apps), delete_if_exists=True)
    CachedDBHandler.reset()
    ModelHashHandler.reset()


def _accounts() -> Iterator[Row]:
    for person in PEOPLE:
        yield "admin.MainUser", {**person.profile, **_BORN}
    for app, person in product(APPS, PEOPLE):
        left_out = "email" if app == "phone" else "phone_number"
        values: dict[str, object] = {name: value for name, value in person.profile.items() if name != left_out}
        values |= {"password": person.password(app), "created_at": OPENED, "last_logged_in": OPENED}
        if app not in ("gmail", "phone"):
            values["verified"] = True  # required for logging in
        if app == "venmo":
            values["venmo_balance"] = 2000.0
        yield f"{app}.User", values


def _documentation(data: Path) -> Iterator[Row]:
    """Write the API documentation files, and yield the rows from which the ``api_docs`` app answers.

    The engine's own ``ApiDocCollection.save`` needs a package that it does not depend on.
    """
    from appworld.api_docs import prepare_api_docs
    from appworld.apps import get_all_apps
    from appworld.collections.api_docs import ApiDocCollection
    from appworld.common.constants import CANARY_STRING

    apps = get_all_apps(skip_admin=True)
    for app, documents in ApiDocCollection.build(load_apps=tuple(apps)).items():
        marked = {name: {**document, "canary_string": CANARY_STRING} for name, document in documents.items()}
        _write(data / "api_docs" / "standard" / f"{app}.json", _json(marked))
    for document in map(dict, chain.from_iterable(map(prepare_api_docs, apps))):
        yield "api_docs.ApiDoc", {**document, "app_name_": document["app_name"]}


def _build_databases(task: Task, folder: Path) -> None:
    """Save the task's additions to the base databases as statements; opens only the apps that have additions."""
    from appworld.apps import get_all_apps
    from appworld.apps.model_lib import get_db_home_path
    from appworld.collections.models import ModelCollection

    models = ModelCollection.load(
        to_db_home_path=get_db_home_path(storage_type="memory", type="task_input", task_id=task.id),
        from_db_home_path=get_db_home_path(storage_type="disk", type="base"),
        load_apps=["admin", "supervisor", *{model.split(".")[0] for model, _ in task.extra}],
    )
    person = task.supervisor
    insert([("supervisor.Supervisor", {**person.profile, **_BORN})])
    accounts = [{"supervisor_id": 1, "account_name": app, "password": person.password(app)} for app in APPS]
    insert(("supervisor.AccountPassword", values) for values in accounts)
    insert([("supervisor.Task", {"supervisor_id": 1, "instruction": task.instruction}), *task.extra])
    models.save(db_home_path=str(folder), format="changes", delete_if_exists=True)
    models.close()
    for app in get_all_apps():
        (folder / f"{app}.jsonl").touch()


def _write_task(task: Task, folder: Path, version: str) -> None:
    solution = task.solution
    specs = {
        "instruction": task.instruction,
        "supervisor": task.supervisor.profile,
        "datetime": task.now.isoformat(),
        "db_version": version,
    }
    metadata = {
        "mode": "full",
        "difficulty": task.difficulty,
        "num_apps": len(task.apps),
        "num_apis": len(task.apis),
        "num_solution_code_lines": len(solution.splitlines()) - 1,
    }
    labels = [
        {"requirement": test.requirement, "label": "no_op_pass" if test.idle_passes else "no_op_fail"}
        for test in task.tests
    ]
    values = {"metadata": metadata, "answer": task.answer, "public_data": {}, "private_data": dict(task.private)}
    _write(folder / "specs.json", _json(specs))
    truth = folder / "ground_truth"
    for name, value in {**values, "test_data": labels, "required_apps": list(task.apps)}.items():
        _write(truth / f"{name}.json", _json(value))
    for name, text in {"evaluation": task.evaluation, "solution": solution, "compiled_solution": solution}.items():
        _write(truth / f"{name}.py", text)


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
