"""What ACE is made of beside its algorithm: replies, insights, the editing of a step, and what a run asks of it."""
