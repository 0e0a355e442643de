//! What a series of response times says: where the start-up ends, how long a period is, and whether
//! the mean is known well enough to stop. Pure functions; they know no device and no run.
