//! What the process takes: the files under `/proc/self` come in, numbers go out. Nothing where there are none.

use std::fs;
use std::time::Duration;

/// What the process takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Process {
    /// Processor time used.
    pub cpu: Duration,
    /// Bytes in the machine's memory.
    pub resident: u64,
    /// Bytes mapped.
    pub mapped: u64,
    /// Threads.
    pub threads: u64,
    /// Files and sockets open.
    pub files: u64,
    /// How many may be; nothing for no limit.
    pub most_files: Option<u64>,
}

impl Process {
    /// This process, as Linux shows it.
    pub fn read() -> Option<Process> {
        let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).ok();
        Process::parse(&read("stat")?, &read("status")?, &read("limits")?, open_files()?)
    }

    fn parse(stat: &str, status: &str, limits: &str, files: u64) -> Option<Process> {
        // The name of the program, in parentheses, may contain anything. After it the third field is next.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        // Linux tells user space of hundredths of a second, whatever its own clock does.
        let cpu = Duration::from_millis((ticks(14)? + ticks(15)?) * 10);
        let kilobytes = |name: &str| Some(field(status, name)?.parse::<u64>().ok()? * 1024);
        let most_files = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        Some(Process {
            cpu,
            resident: kilobytes("VmRSS:")?,
            mapped: kilobytes("VmSize:")?,
            threads: field(status, "Threads:")?.parse().ok()?,
            files,
            most_files: most_files.split_whitespace().next()?.parse().ok(),
        })
    }
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()
}

/// Newer kernels say it as the size of the directory; with older ones its entries are counted.
fn open_files() -> Option<u64> {
    const FILES: &str = "/proc/self/fd";
    match fs::metadata(FILES).ok()?.len() {
        0 => Some(fs::read_dir(FILES).ok()?.count() as u64),
        known => Some(known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let stat = "17 (a ) (b) S 1 17 17 0 -1 4194560 900 0 0 0 150 50 0 0 20 0 9 0 100 1000 50 18446744073709551615";
        let status = "Name:\tflare\nVmSize:\t  2048 kB\nVmRSS:\t 1024 kB\nThreads:\t9\n";
        let limits = "Limit Soft Hard Units\nMax open files            1024                 4096                 files\n";
        let process = Process::parse(stat, status, limits, 12);
        let expected = Process {
            cpu: Duration::from_secs(2),
            resident: 1 << 20,
            mapped: 2 << 20,
            threads: 9,
            files: 12,
            most_files: Some(1024),
        };
        assert_eq!(process, Some(expected));
        let unlimited = limits.replace("1024", "unlimited");
        assert_eq!(Process::parse(stat, status, &unlimited, 12).unwrap().most_files, None);
        assert_eq!(Process::parse("17 (cut off", status, limits, 12), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_can_be_read() {
        let process = Process::read().expect("Linux shows it");
        assert!(process.resident > 100_000 && process.mapped >= process.resident, "{process:?}");
        assert!(process.threads > 0 && process.files > 0, "{process:?}");
    }
}
