//! Of parts of the timeline by themselves.

mod calendar;
mod planes;
