//! The statistics of a series of response times: the end of the start-up, the period, and whether
//! the mean is precise enough to stop. Pure functions, independent of devices and runs.
//!
//! [`analyse`] is used by `uflip analyse` and the report; [`StopRule`] applies the same analysis to
//! a running benchmark. docs/explanation/when-a-run-is-long-enough.md has the formulas.
//!
//! This is the only crate below the engine whose decisions use floating-point numbers: basic
//! operations, square roots and logarithms, in a fixed order, without machine-dependent vector
//! code.

#![forbid(unsafe_code)]

mod analysis;
mod batch_means;
mod change_points;
mod levels;
mod percentiles;
mod period;
mod quantile;
mod startup;
mod stationarity;
mod stop_rule;

pub use analysis::{
    Analysis, AnalysisOptions, MIN_IOS_ANALYSED, SeriesPhase, SeriesVerdict, UncertaintyReason,
    analyse, check,
};
pub use batch_means::half_width;
pub use change_points::pelt;
pub use levels::Level;
pub use percentiles::Percentile;
pub use period::autocorrelation;
pub use quantile::{normal_quantile, student_quantile};
pub use stop_rule::{StopRule, Verdict};
