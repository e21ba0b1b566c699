"""Builds the data root with the engine: base databases, API documentation, task folders, lists of tasks.

Two builds give equal task files and equal database contents.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from . import household, money, music
from .people import APPS, NOW, OPENED, PEOPLE, Person
from .tables import Row, Table, insert
from .tasks import SPLITS, Task, all_tasks

_BASE = ":memory:base"
"""The engine's name for the base databases while they are built; on disk this takes several times as long."""
_BORN = {"birthday": "1990-01-01", "sex": "female"}


def build(root: Path) -> None:
    """Write the data root at ``root``, which must not exist yet.

    Works once in a process: the engine keeps the first root that it has read. Raises ``RuntimeError`` where the engine
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
    for tables in (_accounts(), _documentation(data), money.tables(), music.tables(), household.tables()):
        for table in tables:
            insert(table)
    save_local_dbs(_BASE, str(data / "base_dbs"), format="full", app_names=list(apps), delete_if_exists=True)
    CachedDBHandler.reset()
    ModelHashHandler.reset()


def _accounts() -> Iterator[Table]:
    yield Table(app="admin", model="MainUser", rows=[{**person.profile, **_BORN} for person in PEOPLE])
    for app in APPS:
        yield Table(app=app, model="User", rows=[_account(app, person) for person in PEOPLE])


def _account(app: str, person: Person) -> Row:
    row = {
        "first_name": person.first,
        "last_name": person.last,
        "password": person.password(app),
        "created_at": OPENED,
        "last_logged_in": OPENED,
    }
    row |= {"phone_number": person.phone} if app == "phone" else {"email": person.email}
    if app not in ("gmail", "phone"):
        row["verified"] = True  # required for logging in
    if app == "venmo":
        row["venmo_balance"] = 2000.0
    return row


def _documentation(data: Path) -> Iterator[Table]:
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
    documents = [dict(document) for app in apps for document in prepare_api_docs(app)]
    yield Table(app="api_docs", model="ApiDoc", rows=[{**row, "app_name_": row.pop("app_name")} for row in documents])


def _build_databases(task: Task, folder: Path) -> None:
    """Save the task's additions to the base databases as statements; opens only the apps that have additions."""
    from appworld.apps import get_all_apps
    from appworld.apps.model_lib import get_db_home_path
    from appworld.collections.models import ModelCollection

    models = ModelCollection.load(
        to_db_home_path=get_db_home_path(storage_type="memory", type="task_input", task_id=task.id),
        from_db_home_path=get_db_home_path(storage_type="disk", type="base"),
        load_apps=["admin", "supervisor", *{table.app for table in task.extra}],
    )
    person = task.supervisor
    insert(Table(app="supervisor", model="Supervisor", rows=[{**person.profile, **_BORN}]))
    passwords = [{"supervisor_id": 1, "account_name": app, "password": person.password(app)} for app in APPS]
    insert(Table(app="supervisor", model="AccountPassword", rows=passwords))
    insert(Table(app="supervisor", model="Task", rows=[{"supervisor_id": 1, "instruction": task.instruction}]))
    for table in task.extra:
        insert(table)
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
