// name: set_password(old, new)
// Replaces the password of the user who is logged in; a fresh server demands it before anything else.
ALTER CURRENT USER SET PASSWORD FROM $old TO $new
