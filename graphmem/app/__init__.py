"""The application: its services, built from the settings, and their health."""
