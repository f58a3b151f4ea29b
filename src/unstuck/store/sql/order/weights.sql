SELECT name, weight FROM unstuck_tenants WHERE weight <> 1
