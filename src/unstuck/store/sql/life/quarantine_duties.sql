SELECT DISTINCT duty FROM unstuck_quarantine
