"""The engines that are compared, one file each; see `bench.contender` for what they offer."""
