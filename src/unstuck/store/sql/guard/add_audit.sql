INSERT INTO unstuck_audit (at, by, verb, subject, tenant, detail)
VALUES (unstuck_now(), :by, :verb, :subject, :tenant, :detail)
