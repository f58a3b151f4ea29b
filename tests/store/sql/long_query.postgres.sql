SELECT pg_sleep(60)
