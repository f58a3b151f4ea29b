SELECT q.item
  FROM json_each(:items) AS r
  CROSS JOIN unstuck_quarantine q ON q.duty = :duty AND q.item = r.value
