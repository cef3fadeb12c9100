//! Progress on stderr: a bar and a line for each path on a terminal, a plain line every few seconds
//! elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use polypath::{Path, PathId, Time};

use crate::role::Role;
use crate::text;

/// Interval of updates on a terminal.
const REDRAW: Duration = Duration::from_millis(200);
/// Interval of lines without a terminal.
const LINE: Duration = Duration::from_secs(5);
/// Weight of the newest sample in the displayed rate.
const SMOOTHING: f64 = 0.3;

/// The progress display.
#[derive(Debug)]
pub(crate) struct Progress {
    role: Role,
    name: String,
    kind: Kind,
    /// Time of the last update.
    shown: Option<Time>,
    rates: Vec<Rate>,
}

#[derive(Debug)]
enum Kind {
    Bars { all: MultiProgress, bar: Box<ProgressBar>, paths: Vec<ProgressBar> },
    Lines,
    Nothing,
}

/// Smoothed byte rate of a path.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    bytes: u64,
    smooth: f64,
}

impl Progress {
    pub(crate) fn new(role: Role, name: &str, total: Option<u64>, quiet: bool) -> Self {
        let kind = if quiet {
            Kind::Nothing
        } else if stderr().is_terminal() {
            let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
            let bar = all.add(
                total.map_or_else(ProgressBar::no_length, ProgressBar::new).with_style(bar_style()),
            );
            bar.set_message(name.to_owned());
            Kind::Bars { all, bar: Box::new(bar), paths: Vec::new() }
        } else {
            Kind::Lines
        };
        Self { role, name: name.to_owned(), kind, shown: None, rates: Vec::new() }
    }

    /// Updates the display, at most once per [`REDRAW`] or [`LINE`].
    pub(crate) fn update(
        &mut self,
        now: Time,
        done: u64,
        total: Option<u64>,
        paths: &[Path],
        current: PathId,
    ) {
        let pause = match &self.kind {
            Kind::Nothing => return,
            Kind::Bars { .. } => REDRAW,
            Kind::Lines => LINE,
        };
        let Some(last) = self.shown else {
            self.shown = Some(now);
            return;
        };
        let passed = now.since(last);
        if passed < pause {
            return;
        }
        self.shown = Some(now);
        self.rates.resize(paths.len(), Rate::default());
        let mut lines = Vec::with_capacity(paths.len());
        for (path, rate) in paths.iter().zip(&mut self.rates) {
            let bytes = match self.role {
                Role::Sender => path.stats.bytes_sent,
                Role::Receiver => path.stats.bytes_received,
            };
            let newest = (bytes - rate.bytes) as f64 / passed.as_secs_f64();
            rate.bytes = bytes;
            rate.smooth += SMOOTHING * (newest - rate.smooth);
            let shown = if matches!(self.kind, Kind::Lines) { newest } else { rate.smooth };
            lines.push(path_line(path, shown * 8.0, path.view.id == current));
        }
        match &mut self.kind {
            Kind::Bars { all, bar, paths } => {
                bar.set_position(total.map_or(done, |total| done.min(total)));
                for (index, line) in lines.into_iter().enumerate() {
                    if index == paths.len() {
                        let line = ProgressBar::new_spinner().with_style(line_style());
                        paths.push(all.add(line));
                    }
                    paths[index].set_message(line);
                }
            }
            Kind::Lines => {
                let share = total.map(|total| {
                    let share = if total == 0 { 1.0 } else { done as f64 / total as f64 };
                    format!(" of {} ({:.0} %)", text::size(total), 100.0 * share)
                });
                eprintln!("{}: {}{}", self.name, text::size(done), share.unwrap_or_default());
                for line in lines {
                    eprintln!("{line}");
                }
            }
            Kind::Nothing => {}
        }
    }

    /// Shows an event above the progress.
    pub(crate) fn tell(&self, news: &impl std::fmt::Display) {
        match &self.kind {
            // If the terminal fails, the event is still in the summary.
            Kind::Bars { all, .. } => drop(all.println(news.to_string())),
            Kind::Lines => eprintln!("{}: {news}", self.name),
            Kind::Nothing => {}
        }
    }

    /// Removes the display.
    pub(crate) fn clear(&mut self) {
        if let Kind::Bars { all, bar, paths } = &mut self.kind {
            for line in paths {
                line.finish_and_clear();
            }
            bar.finish_and_clear();
            // An error leaves at most an outdated display.
            let _ = all.clear();
        }
    }
}

fn path_line(path: &Path, bits_per_second: f64, current: bool) -> String {
    let view = &path.view;
    let errors = match view.error_count {
        0 => String::new(),
        1 => ", 1 error".to_owned(),
        count => format!(", {count} errors"),
    };
    format!(
        "{} path {}  {} > {}  {}{errors}  {}  rtt {}  cwnd {}",
        if current { '*' } else { ' ' },
        view.id,
        view.local,
        view.remote,
        view.state,
        text::rate(bits_per_second),
        view.srtt.map_or_else(|| "-".to_owned(), text::span),
        text::size(view.window.cwnd.into()),
    )
}

fn bar_style() -> ProgressStyle {
    // https://no-color.org: the variable is set and not empty.
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let template = if plain {
        "{msg} [{bar:30}] {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} eta {eta}"
    } else {
        "{msg} [{bar:30.cyan}] {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} eta {eta}"
    };
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

fn line_style() -> ProgressStyle {
    ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}
