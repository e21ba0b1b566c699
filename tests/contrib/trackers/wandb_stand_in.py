"""Stands in for the package wandb in the worker: writes what it is asked to the file RECORD, a JSON line each."""

import json
import os
from pathlib import Path


def record(*said):
    with open(os.environ["RECORD"], "a", encoding="utf-8") as file:
        file.write(json.dumps(said) + "\n")


class Settings(dict):
    pass


class Table:
    def __init__(self, columns):
        self.rows = [columns]

    def add_data(self, *row):
        self.rows.append(row)


class Artifact:
    def __init__(self, name, type, metadata):
        self.said = [name, type, metadata]

    def add_file(self, path):
        self.said.append(Path(path).name)


class Run:
    id = "run-1"

    @property
    def summary(self):
        return self

    def update(self, figures):
        record("summary", figures)

    def log(self, point):
        record("log", {name: getattr(value, "rows", value) for name, value in point.items()})

    def log_artifact(self, artifact):
        record("artifact", *artifact.said)

    def define_metric(self, name, step_metric):
        record("metric", name, step_metric)

    def finish(self, exit_code):
        record("finish", exit_code)


def init(**settings):
    record("init", settings)
    return Run()
