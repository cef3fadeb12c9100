//! The table of requirements: sentence, test, verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// A list of requirements, and the page with its table.
struct Document {
    /// The module with its tests.
    module: &'static str,
    title: &'static str,
    list: &'static str,
    page: &'static str,
    /// The lines of the list.
    sentences: &'static str,
}

const KEY_WORDS: &str = "Every sentence with a key word of RFC 2119";
const MUSTS: &str = "Every sentence with MUST, MUST NOT, SHALL, SHALL NOT or REQUIRED";

const DOCUMENTS: &[Document] = &[
    Document {
        module: "rfc9260",
        title: "RFC 9260, sections 3 to 9",
        list: include_str!("rfc9260.tsv"),
        page: "rfc9260.md",
        sentences: KEY_WORDS,
    },
    Document {
        module: "rfc8260",
        title: "RFC 8260: stream schedulers and user message interleaving",
        list: include_str!("rfc8260.tsv"),
        page: "rfc8260.md",
        sentences: MUSTS,
    },
    Document {
        module: "rfc7829",
        title: "RFC 7829: the potentially failed state",
        list: include_str!("rfc7829.tsv"),
        page: "rfc7829.md",
        sentences: MUSTS,
    },
    Document {
        module: "rfc3758",
        title: "RFC 3758: partial reliability",
        list: include_str!("rfc3758.tsv"),
        page: "rfc3758.md",
        sentences: MUSTS,
    },
    Document {
        module: "rfc4895",
        title: "RFC 4895: authenticated chunks",
        list: include_str!("rfc4895.tsv"),
        page: "rfc4895.md",
        sentences: MUSTS,
    },
    Document {
        module: "rfc7496",
        title: "RFC 7496: additional policies of partial reliability",
        list: include_str!("rfc7496.tsv"),
        page: "rfc7496.md",
        sentences: MUSTS,
    },
    Document {
        module: "rfc4820",
        title: "RFC 4820: the padding chunk and parameter",
        list: include_str!("rfc4820.tsv"),
        page: "rfc4820.md",
        sentences: MUSTS,
    },
    Document {
        module: "rfc5061",
        title: "RFC 5061: dynamic address reconfiguration",
        list: include_str!("rfc5061.tsv"),
        page: "rfc5061.md",
        sentences: MUSTS,
    },
    Document {
        module: "rfc6525",
        title: "RFC 6525: stream reconfiguration",
        list: include_str!("rfc6525.tsv"),
        page: "rfc6525.md",
        sentences: MUSTS,
    },
    Document {
        module: "rfc6951",
        title: "RFC 6951: UDP encapsulation",
        list: include_str!("rfc6951.tsv"),
        page: "rfc6951.md",
        sentences: MUSTS,
    },
    Document {
        module: "rfc8261",
        title: "RFC 8261: SCTP over DTLS",
        list: include_str!("rfc8261.tsv"),
        page: "rfc8261.md",
        sentences: MUSTS,
    },
];

/// A line of the list.
struct Requirement<'a> {
    id: &'a str,
    level: &'a str,
    sentence: &'a str,
    /// Why the requirement has no test, or "= " and the requirement whose test covers it.
    reason: &'a str,
}

fn read(list: &str) -> Vec<Requirement<'_>> {
    let rows = list.lines().skip(1).map(|line| {
        let mut fields = line.split('\t');
        let mut field = || fields.next().unwrap_or_else(|| panic!("too few fields: {line}"));
        Requirement { id: field(), level: field(), sentence: field(), reason: field() }
    });
    rows.collect()
}

/// The requirements that a test's name lists: `s5_2_1_r3_r4_words` lists 5.2.1/3 and 5.2.1/4.
fn requirements_of(name: &str) -> Vec<String> {
    let Some(words) = name.strip_prefix('s') else { return Vec::new() };
    let parts: Vec<&str> = words.split('_').collect();
    let digits = |part: &&&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let section: Vec<&str> = parts.iter().take_while(digits).copied().collect();
    let numbers = parts[section.len()..].iter().map_while(|part| {
        let number = part.strip_prefix('r')?;
        digits(&&number).then_some(number)
    });
    numbers.map(|number| format!("{}/{number}", section.join("."))).collect()
}

/// Runs the document's tests in a separate process; returns each test's name and verdict.
fn verdicts(module: &str) -> BTreeMap<String, bool> {
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program)
        .args([&format!("{module}::"), "--color=never"])
        .output()
        .expect("this program runs again");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| {
        let (name, verdict) = line.strip_prefix("test ")?.split_once(" ... ")?;
        Some((name.to_owned(), verdict == "ok"))
    });
    lines.collect()
}

/// Whether this run writes the pages.
#[allow(clippy::disallowed_methods, reason = "how a person asks for it")]
fn writes() -> bool {
    std::env::var_os("POLYPATH_WRITE").is_some()
}

#[test]
fn every_requirement_has_a_test_or_a_reason() {
    for document in DOCUMENTS {
        let requirements = read(document.list);
        let known: BTreeSet<&str> = requirements.iter().map(|r| r.id).collect();
        let mut tests: BTreeMap<String, Vec<(String, bool)>> = BTreeMap::new();
        for (name, passed) in verdicts(document.module) {
            let short = name.rsplit("::").next().unwrap_or_default();
            for id in requirements_of(short) {
                assert!(known.contains(id.as_str()), "{name}: there is no requirement {id}");
                tests.entry(id).or_default().push((name.clone(), passed));
            }
        }
        let (table, open) = table(document, &requirements, &tests);
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs").join(document.page);
        if writes() {
            std::fs::write(&page, &table).expect("the page can be written");
        }
        assert!(open.is_empty(), "neither test nor reason: {}", open.join(", "));
        let written = std::fs::read_to_string(&page).unwrap_or_default();
        assert!(
            written == table,
            "docs/{} is not what the tests say: POLYPATH_WRITE=1 cargo test -p polypath-proto-tests \
             --test conformance writes it",
            document.page,
        );
    }
}

/// The page, and the requirements that no test covers.
fn table(
    document: &Document,
    requirements: &[Requirement<'_>],
    tests: &BTreeMap<String, Vec<(String, bool)>>,
) -> (String, Vec<String>) {
    let (mut rows, mut open) = (String::new(), Vec::new());
    let (mut shown, mut reasons) = (0, 0);
    for requirement in requirements {
        let own = tests.get(requirement.id);
        let other = requirement.reason.strip_prefix("= ");
        let (test, verdict) = match (own.or_else(|| tests.get(other?)), requirement.reason) {
            (Some(found), _) => {
                shown += 1;
                let names: Vec<String> = found
                    .iter()
                    .map(|(name, _)| format!("`{}`", name.rsplit("::").next().unwrap_or(name)))
                    .collect();
                let passed = found.iter().all(|(_, passed)| *passed);
                (names.join(", "), if passed { "passes" } else { "**fails**" })
            }
            (None, "") => {
                open.push(requirement.id.to_owned());
                (String::new(), "**open**")
            }
            (None, reason) => {
                assert!(other.is_none(), "{}: {reason} has no test", requirement.id);
                reasons += 1;
                (String::new(), reason)
            }
        };
        let Requirement { id, level, sentence, .. } = requirement;
        let sentence = sentence.replace('|', "\\|");
        writeln!(rows, "| {id} | {level} | {sentence} | {test} | {verdict} |").unwrap();
    }
    let page = format!(
        "# {}\n\n{}, the test that shows it, and the verdict. {} requirements: {shown} shown by a \
         test, {reasons} with a reason why there is none.\n\n\
         Written by `POLYPATH_WRITE=1 cargo test -p polypath-proto-tests --test conformance`; the \
         same test fails if this page is not up to date.\n\n\
         | requirement | level | sentence | test | verdict |\n|---|---|---|---|---|\n{rows}",
        document.title,
        document.sentences,
        requirements.len(),
    );
    (page, open)
}

#[test]
fn a_name_lists_its_requirements() {
    assert_eq!(requirements_of("s5_2_1_r3_r14_an_init_ack"), ["5.2.1/3", "5.2.1/14"]);
    assert_eq!(requirements_of("s6_r4_words"), ["6/4"]);
    assert_eq!(requirements_of("short_of_numbers"), [""; 0]);
}
