"""What every other package stands on: settings, errors, times, logs, metrics, retries and files."""
