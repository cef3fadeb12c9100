//! The summary on stdout after a transfer.

use std::fmt::Write;

use serde_json::{Value, json};

use polypath_apps::transfer::outcome::{Done, Outcome};

use crate::failure::Failure;
use crate::monitor::{Change, Observations, What};
use crate::output;
use crate::role::Role;
use crate::text;

/// A transfer that has come to its end.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) role: Role,
    pub(crate) outcome: Outcome,
    pub(crate) seen: Observations,
}

impl Summary {
    pub(crate) fn print(&self, as_json: bool) -> Result<(), Failure> {
        if as_json { output::print_line(self.json()) } else { output::print(self.text()) }
    }

    fn seconds(&self) -> f64 {
        self.seen.duration.as_secs_f64()
    }

    /// User bytes on each path, of the file and of control messages.
    fn path_bytes(&self) -> Vec<u64> {
        let bytes = |path: &polypath::Path| match self.role {
            Role::Sender => path.stats.data_bytes_sent,
            Role::Receiver => path.stats.data_bytes_received,
        };
        self.seen.paths.iter().map(bytes).collect()
    }

    /// Bit rate of what was sent, without what the receiver had already.
    fn goodput(&self) -> f64 {
        let bytes = self.outcome.bytes - self.outcome.kept.min(self.outcome.bytes);
        if self.seconds() > 0.0 { bytes as f64 * 8.0 / self.seconds() } else { 0.0 }
    }

    /// The only file, or the name of all of them.
    fn file(&self) -> String {
        match (&self.outcome.done[..], self.role) {
            ([done], Role::Receiver) if self.outcome.files == 1 => done.path.display().to_string(),
            _ => self.outcome.name.clone(),
        }
    }

    /// The summary in lines.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).map_or_else(|_| String::new(), |()| text)
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let (verb, news) = match self.role {
            Role::Sender => ("sent", "acknowledgements"),
            Role::Receiver => ("received", "data"),
        };
        let Outcome { files, bytes, kept, done, .. } = &self.outcome;
        let count = match files {
            1 => String::new(),
            files => format!("{files} files, "),
        };
        writeln!(
            text,
            "{verb} {}: {count}{bytes} bytes in {:.2} s, {}",
            self.file(),
            self.seconds(),
            text::rate(self.goodput())
        )?;
        if *kept > 0 {
            writeln!(text, "{kept} bytes were there already")?;
        }
        match &done[..] {
            [Done { sha256, .. }] => writeln!(text, "sha256 {sha256}")?,
            several => {
                for Done { sha256, path, .. } in several {
                    writeln!(text, "sha256 {sha256}  {}", path.display())?;
                }
                if *files > several.len() as u64 {
                    writeln!(text, "and {} more files", files - several.len() as u64)?;
                }
            }
        }
        let all: u64 = self.path_bytes().iter().sum();
        for (path, bytes) in self.seen.paths.iter().zip(self.path_bytes()) {
            writeln!(
                text,
                "path {}  {} > {}  {bytes} bytes ({:.1} %)  {}",
                path.view.id,
                path.view.local,
                path.view.remote,
                bytes as f64 * 100.0 / all.max(1) as f64,
                path.view.state,
            )?;
        }
        writeln!(
            text,
            "longest time without new {news}: {:.2} s, from {:.2} s on",
            self.seen.blackout.as_secs_f64(),
            self.seen.blackout_at.as_secs_f64()
        )?;
        if self.seen.standstill > self.seen.blackout {
            writeln!(text, "total standstill: {:.2} s", self.seen.standstill.as_secs_f64())?;
        }
        for change in &self.seen.changes {
            writeln!(text, "{change}")?;
        }
        if self.seen.changes_missed > 0 {
            writeln!(text, "and {} more changes of paths", self.seen.changes_missed)?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let paths: Vec<Value> = self
            .seen
            .paths
            .iter()
            .zip(self.path_bytes())
            .map(|(path, bytes)| {
                json!({
                    "path": path.view.id.0,
                    "local": path.view.local,
                    "remote": path.view.remote,
                    "udp_port": path.view.remote_port,
                    "state": text::state_key(path.view.state),
                    "bytes": bytes,
                    "fast_retransmissions": path.stats.fast_retransmissions,
                    "timeout_retransmissions": path.stats.timeout_retransmissions,
                    "timeouts": path.stats.timeouts,
                    "mtu": path.mtu.mtu,
                    "srtt_s": path.view.srtt.map(|srtt| srtt.as_secs_f64()),
                })
            })
            .collect();
        json!({
            "role": match self.role { Role::Sender => "sender", Role::Receiver => "receiver" },
            "file": self.file(),
            "bytes": self.outcome.bytes,
            "bytes_kept": self.outcome.kept,
            "seconds": self.seconds(),
            "goodput_bit_per_s": self.goodput(),
            "sha256": match &self.outcome.done[..] {
                [done] => Some(&done.sha256),
                _ => None,
            },
            "files": self.outcome.files,
            "listed": self.outcome.done.iter().map(done_json).collect::<Vec<_>>(),
            "rejected": self.outcome.rejected,
            "paths": paths,
            "blackout_s": self.seen.blackout.as_secs_f64(),
            "blackout_at_s": self.seen.blackout_at.as_secs_f64(),
            "standstill_s": self.seen.standstill.as_secs_f64(),
            "changes": self.seen.changes.iter().map(change_json).collect::<Vec<_>>(),
            "changes_missed": self.seen.changes_missed,
        })
    }
}

fn done_json(done: &Done) -> Value {
    json!({
        "path": done.path.display().to_string(),
        "bytes": done.bytes,
        "bytes_kept": done.kept,
        "sha256": done.sha256,
    })
}

fn change_json(change: &Change) -> Value {
    json!({
        "at_s": change.at.as_secs_f64(),
        "path": change.path.0,
        "change": match change.what {
            What::State(state) => text::state_key(state),
            What::Current => "takes_new_data",
            What::Primary => "primary",
        },
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use polypath::{PathId, PathState};

    use super::*;

    fn outcome() -> Outcome {
        Outcome {
            name: "file".into(),
            done: vec![Done {
                path: "out/file".into(),
                bytes: 1_000_000,
                kept: 0,
                sha256: "ab".into(),
            }],
            files: 1,
            bytes: 1_000_000,
            ..Outcome::default()
        }
    }

    fn summary() -> Summary {
        let change = |ms, what| Change { at: Duration::from_millis(ms), path: PathId(0), what };
        Summary {
            role: Role::Receiver,
            outcome: outcome(),
            seen: Observations {
                duration: Duration::from_secs(2),
                blackout: Duration::from_millis(1250),
                blackout_at: Duration::from_millis(500),
                changes: vec![
                    change(1500, What::State(PathState::Inactive)),
                    change(1900, What::Current),
                    change(1900, What::Primary),
                ],
                ..Observations::default()
            },
        }
    }

    #[test]
    fn text_is_short_and_plain() {
        assert_eq!(
            summary().text(),
            "received out/file: 1000000 bytes in 2.00 s, 4.00 Mbit/s\n\
             sha256 ab\n\
             longest time without new data: 1.25 s, from 0.50 s on\n\
             at 1.50 s: path 0 is inactive\n\
             at 1.90 s: new data goes to path 0\n\
             at 1.90 s: path 0 is the primary\n"
        );
    }

    #[test]
    fn json_has_units_in_its_keys() {
        let json = summary().json();
        assert_eq!(json["goodput_bit_per_s"], 4e6);
        assert_eq!(json["blackout_s"], 1.25);
        assert_eq!(json["changes"][0]["change"], "inactive");
        assert_eq!(json["changes"][1]["change"], "takes_new_data");
        assert_eq!(json["changes"][2]["change"], "primary");
    }
}
