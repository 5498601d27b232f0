"""TensorFlow's own ``train_and_evaluate()``: watched where it trains, and in several roles."""
