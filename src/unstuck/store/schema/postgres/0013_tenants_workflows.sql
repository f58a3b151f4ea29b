-- A workflow's row says whose jobs go by it: '*' all tenants', else one tenant's, whose own worker registered it.
DROP VIEW IF EXISTS unstuck_versions;
ALTER TABLE unstuck_workflows ADD COLUMN tenant TEXT NOT NULL DEFAULT '*';
ALTER TABLE unstuck_workflows DROP CONSTRAINT unstuck_workflows_pkey;
ALTER TABLE unstuck_workflows ADD PRIMARY KEY (name, code_version, tenant);

-- Of a policy that is open: whose jobs have it. NULL: of before this; all of them wait for a row of everybody's.
ALTER TABLE unstuck_policies ADD COLUMN tenant TEXT;
