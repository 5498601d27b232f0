"""Training with Keras 3, of any backend: Keras keeps its own loop, and only its public interface is used."""
