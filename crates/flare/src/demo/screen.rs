//! In: how the demo stands. Out: a table that is drawn over itself on a terminal, plain lines elsewhere, or JSON lines.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;

use super::Summary;
use super::role::Role;
use super::world::{Polled, Snapshot, Standing};
use crate::cli::Format;
use crate::cli::remote::colours_are_welcome;

/// Where the demo is shown.
pub struct Screen {
    out: Box<dyn Write + Send>,
    style: Style,
    /// Lines that the next table is drawn over.
    drawn: usize,
}

#[derive(Clone, Copy)]
enum Style {
    Table { colour: bool },
    Lines,
    Json,
}

/// Long lines are cut, not wrapped, so that a table has as many lines as it was drawn with; and no cursor blinks in it.
const ENTER: &str = "\x1b[?7l\x1b[?25l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h";

/// Gives the terminal back as it was, for whoever ends the process at once.
pub fn leave() {
    if io::stdout().is_terminal() {
        let _ = io::stdout().write_all(LEAVE.as_bytes());
        let _ = io::stdout().flush();
    }
}

impl Screen {
    /// Standard output, as it is.
    pub fn of_process(format: Format) -> Screen {
        let style = match (format, io::stdout().is_terminal()) {
            (Format::Json, _) => Style::Json,
            (Format::Human, true) => Style::Table { colour: colours_are_welcome() },
            (Format::Human, false) => Style::Lines,
        };
        Screen { out: Box::new(io::stdout()), style, drawn: 0 }
    }

    /// How often something new is worth showing.
    pub fn interval(&self) -> Duration {
        match self.style {
            Style::Table { .. } => Duration::from_millis(250),
            Style::Lines | Style::Json => Duration::from_secs(1),
        }
    }

    /// Says where everything is.
    pub fn open(&mut self, addr: SocketAddr, seed: u64, cast: &[Role]) -> io::Result<()> {
        let (api, ui) = (format!("http://{addr}"), format!("http://{addr}/ui"));
        let text = match self.style {
            Style::Json => json!({"event": "started", "api": api, "ui": ui, "seed": seed}).to_string() + "\n",
            Style::Table { .. } | Style::Lines => {
                let clients = cast.iter().map(|role| format!("  {:<12}  {}\n", role.name(), role.about()));
                let what = match *cast == Role::BRIDGED {
                    true => "a list of orders that it polls, and two targets",
                    false => "a shop, and six clients that hear of it",
                };
                format!(
                    "Flare {} shows itself: {what}.\n{}\
                     UI   {ui}\nAPI  {api}\nSeed {seed}; ctrl-C stops it, and nothing of it is left.\n",
                    crate::version::VERSION,
                    clients.collect::<String>()
                )
            }
        };
        let enter = if matches!(self.style, Style::Table { .. }) { ENTER } else { "" };
        self.write(&format!("{text}{enter}"))
    }

    /// Shows how everything stands.
    pub fn show(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let text = match self.style {
            Style::Json => {
                let mut line = json!(snapshot);
                line["event"] = "progress".into();
                line.to_string() + "\n"
            }
            Style::Lines => line(snapshot),
            Style::Table { colour } => {
                let table = table(snapshot, colour);
                let lines = table.lines().count();
                let up = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
                self.drawn = lines;
                // Each line clears what is left of the one before it, so nothing flickers.
                up + &table.replace('\n', "\x1b[K\n")
            }
        };
        self.write(&text)
    }

    /// Says how it ended.
    pub fn close(&mut self, summary: &Summary) -> io::Result<()> {
        let text = match self.style {
            Style::Json => {
                let mut line = json!(summary);
                line["event"] = "summary".into();
                line.to_string() + "\n"
            }
            Style::Lines | Style::Table { .. } => summary.to_string(),
        };
        self.write(&text)
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if matches!(self.style, Style::Table { .. }) {
            // Nothing is left to tell it to.
            let _ = self.write(LEAVE);
        }
    }
}

/// Everything in one line.
fn line(snapshot: &Snapshot) -> String {
    let sum = |read: fn(&Standing) -> u64| snapshot.clients.iter().map(read).sum::<u64>();
    let Snapshot { seconds, changes, .. } = snapshot;
    format!(
        "{seconds:>4} s  {changes} changes, {} delivered, {} waiting, {} failed, {} dead letters\n",
        sum(|client| client.delivered),
        sum(|client| client.waiting),
        sum(|client| client.failures),
        sum(|client| client.dead_letters)
    )
}

/// No wider than 80 columns, which every terminal has.
fn table(snapshot: &Snapshot, colour: bool) -> String {
    let Snapshot { seconds, changes, repeats, refused, documents, polls, clients } = snapshot;
    let came = match polls {
        Some(Polled { asked, unchanged }) => format!("asked {asked} times, {unchanged} times unchanged"),
        None => format!("{repeats} sent twice, {refused} refused"),
    };
    let mut text = format!(
        "\n{seconds} s: {documents} documents, {changes} changes, {came}\n\n\
         {:<12}  {:<8}  {:<9}  {:>9}  {:>7}  {:>6}  {:>4}  {:>8}\n",
        "client", "now", "status", "delivered", "waiting", "failed", "dead", "latency"
    );
    for client in clients {
        let status = painted(&format!("{:<9}", client.status), good(client.status == "active"), colour);
        let well = !matches!(client.now, "500" | "503" | "hangs up");
        let now = painted(&format!("{:<8}", client.now), good(well), colour);
        let dead = format!("{:>4}", client.dead_letters);
        let dead = if client.dead_letters > 0 { painted(&dead, good(false), colour) } else { dead };
        let _ = writeln!(
            text,
            "{:<12}  {now}  {status}  {:>9}  {:>7}  {:>6}  {dead}  {:>8}",
            client.client,
            client.delivered,
            client.waiting,
            client.failures,
            latency(client.latency_ms),
        );
    }
    text
}

fn good(good: bool) -> u8 {
    if good { 32 } else { 31 }
}

fn painted(text: &str, code: u8, colour: bool) -> String {
    if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Milliseconds as people read them.
pub fn latency(millis: Option<f64>) -> String {
    match millis {
        None => "-".to_owned(),
        Some(millis) if millis < 10.0 => format!("{millis:.1} ms"),
        Some(millis) if millis < 1000.0 => format!("{millis:.0} ms"),
        Some(millis) => format!("{:.1} s", millis / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::super::world::World;
    use super::*;
    use flare_core::door::ManualClock;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn shown(style: Style, times: usize) -> String {
        shown_to(&Role::ALL, style, times)
    }

    fn shown_to(cast: &'static [Role], style: Style, times: usize) -> String {
        let paper = Paper::default();
        let mut screen = Screen { out: Box::new(paper.clone()), style, drawn: 0 };
        let world = World::new(Arc::new(ManualClock::default()), 1, cast);
        let status = json!({"status": "failing", "delivered": 7, "failed": 3, "feed": {"lagging": 2}});
        let snapshot = world.snapshot(|role| (role == Role::Slow).then_some(&status));
        screen.open("127.0.0.1:8080".parse().unwrap(), 1, cast).unwrap();
        for _ in 0..times {
            screen.show(&snapshot).unwrap();
        }
        drop(screen);
        let text = paper.0.lock().clone();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_table_is_drawn_over_itself_and_the_terminal_is_left_as_it_was() {
        let text = shown(Style::Table { colour: false }, 2);
        assert_eq!(
            text.matches("\x1b[10A").count(),
            1,
            "only the second goes up, by as many lines as were drawn: {text:?}"
        );
        assert_eq!(text.matches("accounting").count(), 3, "once with what it is");
        assert!(text.contains("http://127.0.0.1:8080/ui") && text.ends_with(LEAVE), "{text:?}");
        let row = text.lines().rfind(|line| line.contains("accounting")).unwrap();
        for word in ["slow", "failing", "7", "2", "3"] {
            assert!(row.contains(word), "{row}");
        }
        assert!(
            !row.contains("\x1b[31m") && shown(Style::Table { colour: true }, 1).contains("\x1b[31mfailing")
        );
    }

    #[test]
    fn everything_fits_80_columns() {
        for style in [Style::Lines, Style::Table { colour: false }] {
            let text = shown(style, 2).replace(ENTER, "").replace(LEAVE, "").replace("\x1b[K", "");
            let text = text.replace("\x1b[10A", "");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            let text = shown_to(&Role::BRIDGED, style, 1).replace(ENTER, "").replace(LEAVE, "");
            let text = text.replace("\x1b[K", "");
            assert!(
                text.contains("a list of orders that it polls") && !text.contains("fax-machine"),
                "{text}"
            );
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }

    #[test]
    fn elsewhere_there_are_no_escapes() {
        for style in [Style::Lines, Style::Json] {
            let text = shown(style, 2);
            assert!(!text.contains('\x1b') && text.contains("http://127.0.0.1:8080/ui"), "{text}");
        }
        assert!(
            shown(Style::Json, 3).lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
        );
    }

    #[test]
    fn latencies_are_short_words() {
        let words = [None, Some(1.234), Some(123.4), Some(1500.0)].map(latency);
        assert_eq!(words, ["-", "1.2 ms", "123 ms", "1.5 s"]);
    }
}
