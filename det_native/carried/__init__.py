"""What a user's loop carries from batch to batch: what differs from the loop's beginning, kept and put back."""
