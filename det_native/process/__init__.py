"""What belongs to a whole process: streams of random numbers, counters of names, settings of libraries."""
