"""A life of learning: several tasks or parts of one, learnt in stages by one context, and what each stage leaves."""
