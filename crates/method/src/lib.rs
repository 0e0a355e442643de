//! What a series of response times says: where the start-up ends, how long a period is, and whether
//! the mean is known well enough to stop. Pure functions; they know no device and no run.
//!
//! [`analyse`] is what `uflip analyse` and the report use; [`StopRule`] looks at a run that is under
//! way with the same eyes. docs/explanation/when-a-run-is-long-enough.md has the formulas.
//!
//! This is the one crate below the engine that decides by floating-point numbers: basic operations,
//! square roots and logarithms, in a fixed order, without vector code that differs by machine.

#![forbid(unsafe_code)]

mod analysis;
mod autocorrelation;
mod batches;
mod changes;
mod episodes;
mod levels;
mod percentiles;
mod period;
mod quantile;
mod settling;
mod startup;
mod stationarity;
mod stop;

pub use analysis::{Analysis, FEWEST_IOS, Options, Phase, Reason, analyse, check};
pub use autocorrelation::autocorrelation;
pub use batches::half_width;
pub use changes::pelt;
pub use levels::Level;
pub use percentiles::Percentile;
pub use quantile::{normal_quantile, student_quantile};
pub use stop::{SeriesVerdict, StopRule, Verdict};
