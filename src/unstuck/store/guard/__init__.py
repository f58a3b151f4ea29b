"""GUARD. What keeps one trouble from becoming everybody's: breaker, blacklist, quarantine, audit, keys."""
