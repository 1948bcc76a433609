"""What is built, and what somebody does with it who has nothing else."""
