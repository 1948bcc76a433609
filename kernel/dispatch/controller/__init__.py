"""What is answered on the controller's listener alone: its metadata log, and what brokers ask for themselves."""
