"""The foundation of all other packages: settings, errors, times, logs, metrics, retries and files."""
