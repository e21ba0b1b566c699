"""Runs DSPy's optimisers on the arena: every evaluation is a rollout, and every proposal is a counted call.

The modules here import ``dspy``, which takes a second: methods import them only when they optimise.
"""
