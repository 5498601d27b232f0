"""What is known of other people's libraries: one file a library, used by the check, by values and by the look."""
