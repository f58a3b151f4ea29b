-- Whose a job is: an id is one job's, whoever has it.
SELECT tenant FROM unstuck_jobs WHERE uid = :uid
