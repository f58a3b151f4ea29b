-- Every version, of one tenant or of all of them, of the workflows of which one hides something; most have none.
SELECT name, tenant, redact, schema
  FROM unstuck_workflows
 WHERE name IN (SELECT name FROM unstuck_workflows WHERE redact <> '[]')
   AND (CAST(:tenant AS TEXT) IS NULL OR tenant IN ('*', CAST(:tenant AS TEXT)))
 ORDER BY name, code_version, tenant
