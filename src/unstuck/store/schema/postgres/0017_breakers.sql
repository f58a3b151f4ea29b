-- The breakers of one workflow, of all tenants: they count together too.
CREATE INDEX unstuck_breakers_workflow ON unstuck_breakers (workflow, tenant);
