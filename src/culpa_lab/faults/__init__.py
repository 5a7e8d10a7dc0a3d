"""Known faults that can be switched on: the ground truth for what an isolation should find."""
