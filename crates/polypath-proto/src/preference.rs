//! Which paths carry data: costs and preferences.

/// How much a path is preferred. Of the paths that work, those with the lowest rank carry data; the
/// others send HEARTBEATs only, until no path of a lower rank works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// 0 for paths that cost nothing.
    pub rank: u8,
    /// Bytes of packets that the path may send as if its rank were 0.
    pub budget: u64,
}

impl Preference {
    /// A path that costs nothing.
    pub const NORMAL: Self = Self { rank: 0, budget: 0 };

    /// A path that carries data only if no unmetered one works, apart from `budget` bytes.
    pub const fn metered(budget: u64) -> Self {
        Self { rank: 1, budget }
    }
}
