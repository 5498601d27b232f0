"""What an agent asks of the master: requests of workers passed on, files of the master's home read and written."""
