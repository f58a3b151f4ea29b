"""Operations: everything that can be asked of the engine, one typed function each, a module per noun of the trade.

Faces (command line, Python, later HTTP) translate words into calls of these and views into words; they hold no rule.
"""
