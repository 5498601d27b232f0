"""What handles have for code that was written for Determined's Python SDK (``determined.experimental.client``)."""
