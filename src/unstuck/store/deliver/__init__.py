"""What is told to others: webhooks, and what waits to be sent there."""
