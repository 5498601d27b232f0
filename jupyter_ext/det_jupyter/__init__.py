"""The Jupyter server extension: forwards to the master and adds the token on the server side."""
