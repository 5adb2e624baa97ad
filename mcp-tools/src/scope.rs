//! What a key opens.

use std::fmt;
use std::str::FromStr;

/// Something that a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Read runs.
    RunsRead,
    /// Rank suspects.
    SuspectsRead,
    /// Scan what was recorded.
    ScanRun,
    /// Start experiments.
    ExperimentsStart,
    /// Cancel experiments.
    ExperimentsCancel,
    /// Send recordings.
    IngestWrite,
    /// Everything about the store itself.
    Admin,
}

/// Every scope with its name.
const ALL: [(Scope, &str); 7] = [
    (Scope::RunsRead, "runs:read"),
    (Scope::SuspectsRead, "suspects:read"),
    (Scope::ScanRun, "scan:run"),
    (Scope::ExperimentsStart, "experiments:start"),
    (Scope::ExperimentsCancel, "experiments:cancel"),
    (Scope::IngestWrite, "ingest:write"),
    (Scope::Admin, "admin"),
];

impl Scope {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        let own = ALL.iter().find(|(scope, _)| *scope == self);
        own.map_or("", |(_, name)| name)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no scope: there are runs:read, suspects:read, scan:run, experiments:start, \
     experiments:cancel, ingest:write and admin"
)]
pub struct ScopeError(pub String);

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(name: &str) -> Result<Self, ScopeError> {
        let own = ALL.iter().find(|(_, known)| *known == name);
        own.map(|(scope, _)| *scope)
            .ok_or_else(|| ScopeError(name.to_owned()))
    }
}

/// Some scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    /// Reading and scanning: what a caller without a key has over stdio.
    #[must_use]
    pub fn reading() -> Self {
        Self(vec![Scope::RunsRead, Scope::SuspectsRead, Scope::ScanRun])
    }

    /// Those of these names; a name that is not known opens nothing.
    pub fn known<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().flat_map(str::parse).collect())
    }

    /// Whether this is one of them.
    #[must_use]
    pub fn has(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }
}

impl FromStr for Scopes {
    type Err = ScopeError;

    /// Names with commas between them.
    fn from_str(names: &str) -> Result<Self, ScopeError> {
        let mut scopes = names
            .split(',')
            .map(|name| name.trim().parse())
            .collect::<Result<Vec<_>, _>>()?;
        scopes.sort_unstable();
        scopes.dedup();
        Ok(Self(scopes))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|scope| scope.as_str()).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_and_scopes_are_the_same() {
        for (scope, name) in ALL {
            assert_eq!(name.parse(), Ok(scope));
            assert_eq!(scope.to_string(), name);
        }
        let scopes: Scopes = "scan:run, runs:read,scan:run".parse().unwrap();
        assert_eq!(scopes.to_string(), "runs:read,scan:run");
        assert!(scopes.has(Scope::ScanRun) && !scopes.has(Scope::Admin));
        assert!("runs:write".parse::<Scopes>().is_err() && "".parse::<Scopes>().is_err());
        assert_eq!(
            Scopes::known(["runs:read", "later:word"]).to_string(),
            "runs:read"
        );
    }
}
