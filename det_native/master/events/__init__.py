"""Tell those who wait that something was committed."""
