//! Tests of parts of the timeline.

mod calendar;
mod planes;
mod reference;
