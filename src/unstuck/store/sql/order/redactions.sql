-- Every version of the workflows of which one hides something; most have none.
SELECT name, redact, schema
  FROM unstuck_workflows
 WHERE name IN (SELECT name FROM unstuck_workflows WHERE redact <> '[]')
 ORDER BY name, code_version
