INSERT INTO unstuck_workers (incarnation, name, host, boot_id, pid_namespace, pid, pid_start, queues, code_version,
                             started_at, beat_at, lease_until, info, boot_at)
SELECT :incarnation, :name, :host, :boot_id, :pid_namespace, :pid, :pid_start, :queues, :code_version,
       clock.now, clock.now, clock.now + :lease, :info, CAST(:boot_at AS BIGINT)
  FROM (SELECT unstuck_now() AS now) AS clock
 WHERE NOT EXISTS (SELECT 1 FROM unstuck_workers WHERE incarnation = :incarnation)
ON CONFLICT (incarnation) DO NOTHING
