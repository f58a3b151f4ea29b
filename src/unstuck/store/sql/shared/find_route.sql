SELECT id FROM unstuck_routes WHERE tenant = :tenant AND queue = :queue AND workflow = :workflow
