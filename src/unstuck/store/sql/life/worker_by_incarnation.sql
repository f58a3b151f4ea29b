SELECT w.*, 0 AS running FROM unstuck_workers w WHERE w.incarnation = :incarnation
