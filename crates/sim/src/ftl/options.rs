//! What FTLs that merge are made of, and the tables that profiles have for them.

use uflip_core::{Error, Result};

use crate::flash::geometry::Geometry;

/// The tables of profiles that belong to FTLs that merge, a line each: its name, and its type. Which FTL has
/// which one is said in the list of FTLs; whatever else has to know of a table follows from here.
macro_rules! with_tables {
    ($then:ident) => {
        $then! {
            log: crate::ftl::log_part::LogPart,
            streams: crate::ftl::stream_hybrid::StreamsPart,
            linear: crate::ftl::linear::LinearPart,
            stripes: crate::ftl::stripe_map::StripesPart,
            #[cfg(test)] replacement: crate::ftl::how_to::ReplacementPart,
        }
    };
}
pub(crate) use with_tables;

macro_rules! tables {
    ($($(#[$only:meta])? $table:ident: $part:ty),+ $(,)?) => {
        /// What a profile has of them.
        #[derive(Clone, Default, Debug)]
        #[cfg_attr(test, derive(serde::Deserialize))]
        #[allow(missing_docs)]
        pub(crate) struct Tables {
            $($(#[$only])? pub(crate) $table: Option<$part>),+
        }

        impl Tables {
            /// The names of those that are there.
            pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
                let all = [$($(#[$only])? self.$table.as_ref().map(|_| stringify!($table))),+];
                all.into_iter().flatten()
            }
        }
    };
}
with_tables!(tables);

/// What a merging FTL is made of: its name, the device, and the tables of its profile.
#[derive(Clone, Debug)]
pub(crate) struct MergingOptions<'a> {
    pub(crate) name: &'a str,
    pub(crate) geometry: Geometry,
    pub(crate) tables: Tables,
    /// Power may be lost: no version of a page is given up before a newer one is on flash.
    pub(crate) durable: bool,
}

/// The same for one FTL: with its table, `()` where it has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FtlOptions<'a, T> {
    pub(crate) name: &'a str,
    pub(crate) geometry: Geometry,
    pub(crate) table: &'a T,
    pub(crate) durable: bool,
}

impl MergingOptions<'_> {
    /// Those of the FTL whose table this is.
    pub(super) fn with<'a, T>(&'a self, table: &'a T) -> FtlOptions<'a, T> {
        let MergingOptions { name, geometry, durable, .. } = *self;
        FtlOptions { name, geometry, table, durable }
    }

    /// What is wrong where its FTL has a `table`, and the profile lacks it.
    pub(super) fn lacks(&self, table: &str) -> Error {
        let ftl = self.name;
        Error::usage("This FTL has numbers of its own, which the profile does not give")
            .got(format!("ftl = \"{ftl}\" without a table [{table}]"))
            .action(format!("add [{table}]; docs/reference/profiles.md explains its keys"))
    }
}

#[cfg(test)]
impl MergingOptions<'_> {
    /// An FTL with these tables.
    pub(crate) fn of(name: &str, geometry: Geometry, tables: Tables) -> MergingOptions<'_> {
        MergingOptions { name, geometry, tables, durable: false }
    }

    /// One without any.
    pub(crate) fn bare(name: &str, geometry: Geometry) -> MergingOptions<'_> {
        MergingOptions::of(name, geometry, Tables::default())
    }
}

impl<T> FtlOptions<'_, T> {
    /// What one write costs must end: no change of the map programs more pages than there are.
    ///
    /// # Errors
    /// The number under one of these keys does.
    pub(super) fn check_map_pages(&self, keys: &[(&str, u32)]) -> Result<()> {
        let pages = self.geometry.pages();
        match keys.iter().find(|(_, got)| *got > pages) {
            None => Ok(()),
            Some((key, got)) => Err(Error::usage(format!("Profile key '{key}' makes no device"))
                .got(got.to_string())
                .allowed(format!("0 to {pages}, which are the pages of all dies"))
                .action("change it")),
        }
    }
}
