// Begin a transaction, which a database that has failed refuses.
RETURN true AS usable
