//! Victim policies, one file each: they choose *which* block is collected. The FTL and the device decide
//! *when*.
//!
//! To add a policy: write a file with a type that implements [`VictimPolicy`], and add one line to the list
//! at the end. The module, names, help, documentation checks and conformance tests follow from the list.

mod min_tree;

use uflip_core::{Error, Result};

use crate::flash::geometry::{BlockIdx, Geometry, PlaneIdx};
use crate::pool::blocks::Blocks;

/// Chooses the block whose valid pages are moved next. Every plane has a pool of its own. A policy reads the
/// block accounting, changes only its own order of blocks, and has no access to time.
pub(crate) trait VictimPolicy: Sized {
    /// Create the policy of a device.
    fn new(options: &PolicyOptions) -> Result<Self>;
    /// Add `block` of `plane`, which was filled, to the pool.
    fn closed(&mut self, plane: PlaneIdx, block: BlockIdx, valid: u16);
    /// Note that a page of `block`, which is in the pool, became invalid.
    #[inline]
    fn invalidated(&mut self, _plane: PlaneIdx, _block: BlockIdx, _valid: u16) {}
    /// Remove and return the next victim of `plane`; `None` if the pool is empty.
    fn choose(&mut self, plane: PlaneIdx, blocks: &Blocks) -> Option<BlockIdx>;
    /// Remove `block`, which is collected for another reason (static wear levelling).
    fn remove(&mut self, plane: PlaneIdx, block: BlockIdx, blocks: &Blocks);
}

/// The parameters from which a policy is created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyOptions {
    pub(crate) geometry: Geometry,
    /// The number after the colon: `greedy_window:8`.
    pub(crate) parameter: Option<u32>,
    pub(crate) seed: u64,
}

impl PolicyOptions {
    /// Reject a parameter of a policy that takes none.
    fn no_parameter(&self, name: &str) -> Result<()> {
        match self.parameter {
            None => Ok(()),
            Some(got) => Err(Error::usage(format!("Victim policy '{name}' takes no parameter"))
                .got(format!("'{name}:{got}'"))
                .allowed(name)
                .action("remove the colon and the number")),
        }
    }

    /// Return the parameter of a policy that examines this number of blocks of a plane.
    fn parameter_of(&self, name: &str, meaning: &str, default: u32) -> Result<u32> {
        let value = self.parameter.unwrap_or(default);
        let max = self.geometry.shape().blocks_per_plane;
        if value == 0 || value > max {
            return Err(Error::usage(format!("The {meaning} of '{name}' is out of range"))
                .got(format!("'{name}:{value}'"))
                .allowed(format!("1 to {max}, the blocks of a die"))
                .action(format!(
                    "write {name}:{} or another number in that range",
                    default.min(max)
                )));
        }
        Ok(value)
    }
}

/// Split `text` into the name and the number after the colon.
fn split_name(text: &str) -> Result<(&str, Option<u32>)> {
    let Some((name, number)) = text.split_once(':') else {
        return Ok((text, None));
    };
    let parsed = number.parse().map_err(|_| {
        Error::usage("The number after a policy's name is not a whole number")
            .got(format!("'{text}'"))
            .allowed("NAME or NAME:NUMBER, as in greedy_window:8")
            .action("write a whole number after the colon, or remove both")
    })?;
    Ok((name, Some(parsed)))
}

/// Defines one enum of all policies: a call costs a jump.
macro_rules! policies {
    ($($(#[$only:meta] $(#[$path:meta])?)? $name:literal => $module:ident :: $policy:ident),+ $(,)?) => {
        $($(#[$only] $(#[$path])?)? mod $module;)+

        /// The names of all victim policies.
        pub const VICTIM_POLICIES: &[&str] = &[$($(#[$only])? $name),+];

        /// Any of the registered policies.
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) enum Victims {
            $($(#[$only])? #[allow(missing_docs)] $policy($module::$policy)),+
        }

        impl Victims {
            /// Create a policy by name, as in `greedy` or `greedy_window:8`.
            pub(crate) fn by_name(text: &str, geometry: Geometry, seed: u64) -> Result<Victims> {
                let (name, parameter) = split_name(text)?;
                let options = PolicyOptions { geometry, parameter, seed };
                match name {
                    $($(#[$only])? $name => $module::$policy::new(&options).map(Victims::$policy),)+
                    _ => Err(Error::unknown("victim policy", name, VICTIM_POLICIES)),
                }
            }

            #[inline]
            pub(crate) fn closed(&mut self, plane: PlaneIdx, block: BlockIdx, valid: u16) {
                match self { $($(#[$only])? Victims::$policy(policy) => policy.closed(plane, block, valid)),+ }
            }

            #[inline]
            pub(crate) fn invalidated(&mut self, plane: PlaneIdx, block: BlockIdx, valid: u16) {
                match self { $($(#[$only])? Victims::$policy(policy) => policy.invalidated(plane, block, valid)),+ }
            }

            pub(crate) fn choose(&mut self, plane: PlaneIdx, blocks: &Blocks) -> Option<BlockIdx> {
                match self { $($(#[$only])? Victims::$policy(policy) => policy.choose(plane, blocks)),+ }
            }

            pub(crate) fn remove(&mut self, plane: PlaneIdx, block: BlockIdx, blocks: &Blocks) {
                match self { $($(#[$only])? Victims::$policy(policy) => policy.remove(plane, block, blocks)),+ }
            }
        }
    };
}

policies! {
    "cyclic" => cyclic::Cyclic,
    "greedy" => greedy::Greedy,
    "greedy_window" => greedy_window::GreedyWindow,
    "d_choices" => d_choices::DChoices,
    "random" => random::Random,
    "cost_benefit" => cost_benefit::CostBenefit,
    "spare_shares" => spare_shares::SpareShares,
    #[cfg(test)] #[path = "tests/how_to.rs"] "how_to" => how_to::HowTo,
}
