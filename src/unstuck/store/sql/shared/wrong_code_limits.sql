-- Of workflows whose limit by code is not what the version says that the doors go by (see `workflow`): what it says.
SELECT v.name, v.concurrency, v.rate, v.per_us
  FROM (SELECT w.name, w.concurrency, w.rate, w.per_us,
               ROW_NUMBER() OVER (PARTITION BY w.name
                                  ORDER BY w.is_live DESC, w.registered_at DESC, w.seen_at DESC, w.code_version DESC) AS place
          FROM unstuck_versions w) AS v
  LEFT JOIN unstuck_limits l ON l.kind = 'workflow' AND l.tenant = '*' AND l.name = v.name
 WHERE v.place = 1
   AND ((COALESCE(v.concurrency, -1), COALESCE(v.rate, -1), COALESCE(v.per_us, -1))
        <> (COALESCE(l.code_concurrency, -1), COALESCE(l.code_rate, -1), COALESCE(l.code_per_us, -1))
        OR (l.set_by = :by AND (COALESCE(v.concurrency, -1), COALESCE(v.rate, -1), COALESCE(v.per_us, -1))
                               <> (COALESCE(l.concurrency, -1), COALESCE(l.rate, -1), COALESCE(l.per_us, -1))))
 ORDER BY v.name
