"""The application: settings become wired capabilities, and their health."""
