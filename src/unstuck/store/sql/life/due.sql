-- What time and others have left to do, in one question: idle workers ask nothing else. Starts and stays as due_timers has them, the first
-- by the index; a pause of a target that is over as ended_target_pauses has it, else the next one's end. Of what is set aside for another
-- try only that there is some. MIN(route), and not whether there is a row: that is found by the index, whatever the table was full of.
SELECT clock.now,
       (SELECT t.due_at FROM unstuck_timers t
         WHERE t.kind = 'start'
           AND CASE WHEN (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'start' AND q.item = t.job) IS NULL THEN TRUE ELSE FALSE END
         ORDER BY t.due_at, t.job LIMIT 1) AS start_at,
       (SELECT t.due_at FROM unstuck_timers t
         WHERE t.kind = 'expire'
           AND CASE WHEN (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'expire' AND q.item = t.job) IS NULL THEN TRUE ELSE FALSE END
         ORDER BY t.due_at, t.job LIMIT 1) AS expire_at,
       (SELECT MIN(p.until_at) FROM unstuck_pauses p
         WHERE p.kind = 'target'
           AND (p.until_at > clock.now
                OR EXISTS (SELECT 1 FROM unstuck_targets t
                            WHERE t.tenant = p.tenant AND t.name = p.name
                              AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'target' AND q.item = t.id)))) AS pause_at,
       EXISTS (SELECT 1 FROM unstuck_clock WHERE moved <> ahead) AS has_leapt,
       EXISTS (SELECT 1 FROM unstuck_quarantine WHERE duty IN ('start', 'expire')) AS has_aside,
       EXISTS (SELECT 1 FROM unstuck_inbox WHERE seq > :after) AS has_news,
       (SELECT MIN(route) FROM unstuck_ready) IS NOT NULL AS has_ready
  FROM (SELECT unstuck_now() AS now) AS clock
