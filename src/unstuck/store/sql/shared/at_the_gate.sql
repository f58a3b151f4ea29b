SELECT entry, job FROM unstuck_at_the_gate LIMIT :batch
