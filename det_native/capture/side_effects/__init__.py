"""What a cell does beside changing values: files, commands, random bytes, settings of the process."""
