SELECT has_pauses, has_limits FROM unstuck_gates_in_use
