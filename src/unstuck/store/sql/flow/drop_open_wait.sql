-- One that was answered at this instant stays: it was, though nobody will hear of it.
DELETE FROM unstuck_waits WHERE job = :job AND run = :run AND answer IS NULL
