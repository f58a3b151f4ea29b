SELECT name, checksum FROM unstuck_repeatables
