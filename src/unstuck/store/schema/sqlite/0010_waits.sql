-- The last wait of a run, which alone can be open: who wakes a job that has waited thousands of times reads that one.
CREATE INDEX unstuck_waits_asked ON unstuck_waits (job, run, token);
