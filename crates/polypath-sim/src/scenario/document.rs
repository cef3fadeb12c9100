//! Scenario files as text: TOML, `extends`, and the line of a key.

use std::path::{Path, PathBuf};

use polypath_proto::Registry;
use serde::Deserialize;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::error::{Place, Problem, ScenarioError};
use super::key::{Key, Segment};
use super::{Scenario, de, rate_traces};

/// Maximum number of files in a chain of `extends`.
const MOST_EXTENDS: usize = 16;

impl Scenario {
    /// Reads and validates a scenario.
    ///
    /// # Errors
    /// The first problem, in one line: the key, the problem, and what is allowed.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        Self::from_toml_with(text, &Registry::default())
    }

    /// As [`from_toml`](Self::from_toml); the scenario may name the policies and profiles of this
    /// registry.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml).
    pub fn from_toml_with(text: &str, registry: &Registry) -> Result<Self, ScenarioError> {
        Document::from_text(text)?.scenario(registry)
    }

    /// Reads and validates a scenario file and the files that it extends (`extends = "base.toml"`,
    /// relative to the file): tables are merged key by key, anything else, arrays included, is
    /// taken from the extending file where it has it.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml), with file and line.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        Self::from_file_with(path, &Registry::default())
    }

    /// As [`from_file`](Self::from_file); the scenario may name the policies and profiles of this
    /// registry.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file).
    pub fn from_file_with(
        path: impl AsRef<Path>,
        registry: &Registry,
    ) -> Result<Self, ScenarioError> {
        Document::from_file(path.as_ref())?.scenario(registry)
    }

    /// Replaces the name of a network, if there is one, with the network's paths, in which
    /// `[[path]]` entries override single parameters. Returns the index of each path's entry, if it
    /// has one.
    fn expand_topology(&mut self) -> Result<Vec<Option<usize>>, Problem> {
        let Some(name) = self.named.take() else {
            return Ok((0..self.paths.len()).map(Some).collect());
        };
        let mut paths = name.paths();
        let mut entries = vec![None; paths.len()];
        for (n, entry) in std::mem::take(&mut self.paths).into_iter().enumerate() {
            let key = Key::root().field("path").index(n).field("name");
            let place = paths.iter().position(|path| path.name == entry.name);
            let Some(place) = place else {
                let known = paths.iter().filter_map(|path| path.name.as_deref());
                return Err(match &entry.name {
                    Some(name) => Problem::unknown(key, "path of the topology", name, known),
                    None => {
                        let known: Vec<_> = known.collect();
                        let text = format!("missing; allowed: {}", known.join(", "));
                        Problem::new(key, text)
                    }
                });
            };
            if entries[place].replace(n).is_some() {
                let name = entry.name.unwrap_or_default();
                return Err(Problem::new(key, format!("another entry is about \"{name}\"")));
            }
            let base = std::mem::take(&mut paths[place]);
            paths[place] = entry.over(base);
        }
        self.paths = paths;
        Ok(entries)
    }
}

/// The texts from which a scenario was read: the file itself first, then the files that it extends.
#[derive(Debug, Default)]
struct Document {
    texts: Vec<(Option<PathBuf>, String)>,
    merged: Table,
}

impl Document {
    fn from_text(text: &str) -> Result<Self, ScenarioError> {
        let merged = parse(None, text)?;
        let document = Self { texts: vec![(None, text.to_owned())], merged };
        if document.merged.contains_key("extends") {
            let key = Key::root().field("extends");
            let problem = "only a scenario in a file can extend another file";
            return Err(document.place(Problem::new(key, problem)));
        }
        Ok(document)
    }

    fn from_file(path: &Path) -> Result<Self, ScenarioError> {
        let mut document = Self::default();
        let mut next = Some(path.to_owned());
        while let Some(path) = next.take() {
            let text = std::fs::read_to_string(&path)
                .map_err(|source| ScenarioError::Read { path: path.clone(), source })?;
            let mut table = parse(Some(&path), &text)?;
            let base = table.remove("extends");
            let folder = path.parent().unwrap_or_else(|| Path::new(""));
            let traces = rate_traces::read(&mut table, folder);
            document.texts.push((Some(path.clone()), text));
            traces.map_err(|problem| document.place(problem))?;
            merge(&mut document.merged, table);
            let refuse = |text: String| {
                let place = document.last_place("extends");
                Err(Problem::new(Key::root().field("extends"), text).at(place))
            };
            match base {
                None => {}
                Some(_) if document.texts.len() > MOST_EXTENDS => {
                    return refuse(format!("more than {MOST_EXTENDS} files deep, or in a circle"));
                }
                Some(Value::String(base)) => {
                    next = Some(folder.join(base));
                }
                Some(other) => {
                    return refuse(format!("found {}; allowed: a file name", other.type_str()));
                }
            }
        }
        Ok(document)
    }

    fn scenario(&self, registry: &Registry) -> Result<Scenario, ScenarioError> {
        let value = Value::Table(self.merged.clone());
        let scenario = Scenario::deserialize(de::Reader(value));
        let scenario = scenario.map_err(Problem::from).and_then(|mut scenario| {
            scenario.registry = registry.clone();
            let entries = scenario.expand_topology()?;
            // Number of the path's entry in the text, if the text has an entry for the path.
            let entry = |n: usize| entries.get(n).copied().flatten().unwrap_or(n);
            scenario.check().map_err(|problem| problem.renumbered("path", entry))?;
            Ok(scenario)
        });
        scenario.map_err(|problem| self.place(problem))
    }

    /// Adds the place of the problem's key: in the first text that has the key, or else the nearest
    /// enclosing key.
    fn place(&self, problem: Problem) -> ScenarioError {
        let segments = problem.key.segments();
        for length in (1..=segments.len()).rev() {
            for (file, text) in &self.texts {
                if let Some(line) = line_of(text, &segments[..length]) {
                    return problem.at(Place { file: file.clone(), line: Some(line) });
                }
            }
        }
        let file = self.texts.first().and_then(|(file, _)| file.clone());
        problem.at(Place { file, line: None })
    }

    fn last_place(&self, field: &str) -> Place {
        let Some((file, text)) = self.texts.last() else { return Place::default() };
        Place { file: file.clone(), line: line_of(text, &[Segment::Field(field.to_owned())]) }
    }
}

fn parse(file: Option<&Path>, text: &str) -> Result<Table, ScenarioError> {
    text.parse::<Table>().map_err(|error| {
        let line = error.span().map(|span| line_at(text, span.start));
        let place = Place { file: file.map(Path::to_owned), line };
        // The parser's message may have several lines.
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        ScenarioError::Syntax { place, message }
    })
}

/// Merges tables key by key; for anything else, arrays included, the existing value wins.
fn merge(over: &mut Table, base: Table) {
    for (key, value) in base {
        match (over.get_mut(&key), value) {
            (Some(Value::Table(over)), Value::Table(base)) => merge(over, base),
            (Some(_), _) => {}
            (None, value) => {
                over.insert(key, value);
            }
        }
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|&&b| b == b'\n').count() + 1
}

/// The line of a key in a text that parses.
fn line_of(text: &str, segments: &[Segment]) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let (first, rest) = segments.split_first()?;
    let Segment::Field(name) = first else { return None };
    let (key, value) = document.get_ref().iter().find(|(key, _)| key.get_ref() == name)?;
    let mut offset = key.span().start;
    let mut value = value;
    for segment in rest {
        match (segment, value.get_ref()) {
            (Segment::Field(name), DeValue::Table(table)) => {
                let (key, inner) = table.iter().find(|(key, _)| key.get_ref() == name)?;
                (offset, value) = (key.span().start, inner);
            }
            (Segment::Index(index), DeValue::Array(array)) => {
                value = array.get(*index)?;
                offset = value.span().start;
            }
            _ => return None,
        }
    }
    Some(line_at(text, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_keys() {
        let text = "a = 1\n[t]\nb = 2\n[[p]]\nx = 1\n\n[[p]]\n# c\nx = { y = 3,\n z = 4 }\n";
        let field = |name: &str| Segment::Field(name.to_owned());
        let line = |segments: &[Segment]| line_of(text, segments);
        assert_eq!(line(&[field("a")]), Some(1));
        assert_eq!(line(&[field("t"), field("b")]), Some(3));
        assert_eq!(line(&[field("p"), Segment::Index(1)]), Some(7));
        assert_eq!(line(&[field("p"), Segment::Index(1), field("x"), field("z")]), Some(10));
        assert_eq!(line(&[field("q")]), None);
    }

    #[test]
    fn merging_keeps_what_is_there() {
        let mut over: Table = "a = 1\n[t]\nb = 2".parse().unwrap();
        merge(&mut over, "a = 3\nc = 4\n[t]\nb = 5\nd = 6".parse().unwrap());
        assert_eq!(over, "a = 1\nc = 4\n[t]\nb = 2\nd = 6".parse::<Table>().unwrap());
    }
}
