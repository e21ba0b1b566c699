"""Packages of this project's extras: one sentence says which extra a feature needs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from ace_bench.core.errors import ConfigError

EXTRAS: Mapping[str, str] = {
    "agent_episodic_memory": "langchain",
    "datasets": "data",
    "dspy": "optimisers",
    "inspect_ai": "inspect",
    "joblib": "sweeps",
    "langchain": "langchain",
    "langchain_core": "langchain",
    "langgraph": "langchain",
    "matplotlib": "analysis",
    "model2vec": "static",
    "optuna": "optimisers",
    "pandas": "analysis",
    "pyarrow": "data",
    "ray": "sweeps",
    "sentence_transformers": "embeddings",
    "submitit": "sweeps",
    "tensorboardX": "tracking",
    "verifiers": "verifiers",
    "wandb": "tracking",
}
"""The extra that installs each optional package that this project imports."""
GUESTS = "ace_"
"""How the names of the packages begin that come in the same wheel, in a checkout in the folder ``packages``."""


def missing(feature: str, package: str, otherwise: str = "") -> ConfigError:
    """Return the error for a feature without its package; ``otherwise`` says what else the user can do."""
    hint = f", or {otherwise}" if otherwise else ""
    return ConfigError(f"{feature} needs {package}: pip install 'ace-bench[{EXTRAS[package]}]'{hint}")


def require(feature: str, *packages: str, otherwise: str = "") -> None:
    """Raise ``ConfigError`` for the first of ``packages`` that is not installed; imports nothing."""
    for package in packages:
        if find_spec(package) is None:
            raise missing(feature, package, otherwise)


def missing_extra(error: BaseException | None, feature: str = "this command") -> ConfigError | None:
    """Return the error for a package that an exception or one of its causes misses, ``None`` where none of ours is."""
    while error is not None:
        package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if package in EXTRAS:
            return missing(feature, package)
        if package.startswith(GUESTS) and find_spec(package) is None:
            return ConfigError(f"{feature} needs the package {package}: install ace-bench again, which brings it")
        error = error.__cause__ or error.__context__
    return None
