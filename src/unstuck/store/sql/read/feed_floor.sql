SELECT floor FROM unstuck_sequencer
