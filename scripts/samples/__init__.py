"""Programs that write the sample sets; all their texts are written for this project."""
