"""What a broker says of itself: log lines, metrics under Kafka's names, and an HTTP service that shows them."""
