"""What a trial logs by itself: metrics of its own, pictures, tables, texts and histograms, on their way to reports."""
