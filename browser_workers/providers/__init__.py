"""Where browsers are had from: this machine, DevTools addresses, or a service that sells sessions."""
