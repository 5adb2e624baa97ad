//! Pure thought about runs. No I/O.
