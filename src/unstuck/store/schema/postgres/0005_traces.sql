-- trace: the trace context that the job was submitted with, and that its attempts belong to. span: the traceparent of its last attempt
-- that ended, which the next one links to. Both as model/trace.py writes them; NULL, which costs nothing, where nobody traces.
ALTER TABLE unstuck_jobs ADD COLUMN trace TEXT;
ALTER TABLE unstuck_jobs ADD COLUMN span TEXT;
