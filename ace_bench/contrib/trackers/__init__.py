"""Guest: trackers of experiments, Weights & Biases and TensorBoard."""
